"""Facts and claims about dims, proved and enumerated: `python tests/ir/dims_fuzz.py --pairs 100000 --resume
FILE`.

A pair is random facts and a random claim in the notation of shared/dims/facts.py (fd, fm, cd, mn, mx, eq,
ne, le, lt), with constants up to 8 and a domain of at least two periods where that is affordable. Wrong is:
proved, with a counterexample; disproved, with an example; facts called contradictory that a point
satisfies. The exit status is 1 if anything was wrong.
"""
from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from itertools import product
from math import lcm
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "_typing"))

from stepwell.ir.dims import Dim, DimError, as_dim, ceildiv, dim_max, dim_min
from stepwell.ir.facts import Contradiction, Facts, Truth

ON_INTS: dict[str, Any] = dict(
    fd=lambda a, b: a // b, fm=lambda a, b: a % b, cd=lambda a, b: -(-a // b), mn=min, mx=max,
    eq=lambda a, b: a == b, ne=lambda a, b: a != b, le=lambda a, b: a <= b, lt=lambda a, b: a < b)
ON_DIMS: dict[str, Any] = dict(
    fd=lambda a, b: as_dim(a) // b, fm=lambda a, b: as_dim(a) % b, cd=ceildiv, mn=dim_min, mx=dim_max,
    eq=lambda a, b: as_dim(a).eq(b), ne=lambda a, b: as_dim(a).ne(b),
    le=lambda a, b: as_dim(a).le(b), lt=lambda a, b: as_dim(a).lt(b))
TOP = {1: (240, 1700), 2: (24, 64), 3: (14, 14)}  # sizes a symbol goes through: least, most


class Maker:
    """One random pair; the constants it used give the period."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.names = ["n", "m", "d"][:self.random.choice([1, 1, 2, 2, 2, 3])]
        self.constants = {1}
        self.facts = [f for f in (self.fact() for _ in range(self.random.choice([0, 1, 1, 2, 2, 3]))) if f]
        self.claim = self.make_claim()

    def constant(self) -> int:
        k = self.random.choice([2, 2, 3, 4, 4, 5, 6, 7, 8, 8])
        self.constants.add(k)
        return k

    def name(self) -> str:
        return self.random.choice(self.names)

    def fact(self) -> str:
        n, m, k, c = self.name(), self.name(), self.constant(), self.random.randint(0, 8)
        return self.random.choice(
            [
                f"le({k}, {n})",
                f"le(1, {n})",
                f"le(1, {n})",
                f"lt({n}, {8 + c})",
                f"eq(fm({n}, {k}), 0)",
                f"eq(fm({n}, {k}), 0)",
                f"eq(fm({n}+{c}, {k}), 0)",
                f"eq(fm({n}, {k}), {c % k})",
                f"eq(fm({n}*{m}, {k}), 0)",
                f"ne({n}, {c})",
                f"le({n}, {m})",
                f"lt({n}, {m})",
                f"lt({n}, cd({m}, {k}))",
                f"lt({n}, fd({m}, {k}))",
                f"eq({n}, {k}*{m}+{c})",
                f"eq({n}*{m}, {c})",
                f"eq(fm({n}+{m}, {k}), 0)",
                f"le({n}*{m}, {8 * k})",
                f"eq({k}*{n}, {c}*{m})",
                f"le({c}, fd({n}, {k}))",
                f"lt(mx({n}, {m}), {8 + c})",
                f"eq({self.names[-1]}, {n}*{m})",
                f"le(2, mn({n}, {m}))",
            ]
        )

    def expression(self, depth: int) -> str:
        pick = self.random.random()
        if depth == 0 or pick < 0.1:
            return self.name() if self.random.random() < 0.75 else str(self.random.randint(0, 8))
        a, b, k = self.expression(depth - 1), self.expression(depth - 1), self.constant()
        return self.random.choice(
            [
                f"({a}+{b})",
                f"({a}-{b})",
                f"{k}*{a}",
                f"{a}*{b}",
                f"fd({a}, {k})",
                f"fm({a}, {k})",
                f"cd({a}, {k})",
                f"fd({a}, {k})",
                f"fm({a}, {k})",
                f"({a}+{k - 1})",
                f"mn({a}, {b})",
                f"mx({a}, {b})",
                f"(-{a})",
                f"fd({a}, mx({self.name()}, 1))",
                f"fm({a}, {self.name()}+1)",
            ]
        )

    def make_claim(self) -> str:
        """Some at random, most of the kinds that hold often."""
        n, m, k, c = self.name(), self.name(), self.constant(), self.random.randint(0, 8)
        a, b = self.expression(2), self.expression(self.random.choice([1, 1, 2]))
        j = self.constant()
        positive = f"mx({m}, 1)"
        return self.random.choice(
            [
                f"{self.random.choice(['eq', 'ne', 'le', 'lt'])}({a}, {b})",
                f"{self.random.choice(['eq', 'le'])}({a}, {b})",
                f"eq(fd({a}, {k})*{k} + fm({a}, {k}), {a})",
                f"le({a}, cd({a}, {k})*{k})",
                f"lt(cd({a}, {k})*{k}, {a}+{k + c % 2})",
                f"eq(fd(fd({a}, {k}), {j}), fd({a}, {k * j}))",
                f"eq(cd(cd({a}, {k}), {j}), cd({a}, {k * j}))",
                f"eq(fm({a}, {k}), {c % k})",
                f"eq(fm({n}, {k}), 0)",
                f"eq(fm({b}*{k}, {j}), 0)",
                f"lt(fm({a}, {k}), {k})",
                f"eq(fd({k}*{j}*{a}+{c}, {k}), {j}*{a}+{c // k})",
                f"le({n}, {a})",
                f"le({c}, {a})",
                f"le(mn({a}, {b}), {a})",
                f"le({a}, mx({a}, {b}))",
                f"eq(mn({a}, {b})+mx({a}, {b}), {a}+{b})",
                f"eq(fd({a}*{positive}, {positive}), {a})",
                f"eq(fm({a}*{positive}+{c}, {positive}), fm({c}, {positive}))",
                f"eq(fd(-{a}, {k}), -cd({a}, {k}))",
                f"eq({a}+fm(-{a}, {k}), cd({a}, {k})*{k})",
                f"ne({k}*{n}, {k}*{m}+{1 + c % (k - 1)})",
                f"le({n}, {n}*{m})",
                f"lt({n}*{k}+{c % k}, {k}*{m})",
                f"le(fd({n}, {k}), fd({m}, {k}))",
                f"le(fd({b}, {k}), {b})",
                f"eq(fd({n}, {k})+cd({n}, {k}), {n})",
                f"le(fm({n}, {k}), {n})",
                f"eq(fd({n}, {k}), cd({n}-{k - 1}, {k}))",
            ]
        )


def points(maker: Maker) -> list[bool]:
    """The claim's truth at every point of the domain that satisfies the facts, both values seen or the
    domain's end."""
    least, most = TOP[len(maker.names)]
    top = min(max(2 * lcm(*maker.constants), least), most)
    used = ", ".join(maker.names)
    source = f"lambda {used}: {' and '.join(maker.facts) or 'True'}", f"lambda {used}: {maker.claim}"
    holds, claim = (eval(text, dict(ON_INTS)) for text in source)
    seen: set[bool] = set()
    for values in product(range(top + 1), repeat=len(maker.names)):
        if holds(*values):
            seen.add(claim(*values))
            if len(seen) == 2:
                break
    return sorted(seen)


def judge(seed: int) -> tuple[str, str, float]:
    """(what happened, the pair as text, seconds of proving)."""
    maker = Maker(seed)
    text = f"seed {seed}: {', '.join(maker.facts)} |- {maker.claim}"
    scope = ON_DIMS | {name: Dim.symbol(name) for name in maker.names}
    start = time.perf_counter()
    try:
        relations = [eval(f, dict(scope)) for f in maker.facts]
        claim = eval(maker.claim, dict(scope))
        answer: Any = Facts(relations).prove(claim)
    except Contradiction:
        answer = "contradiction"
    except DimError:
        answer = Truth.UNKNOWN
    spent = time.perf_counter() - start
    seen = points(maker)
    if not seen:
        return "empty", text, spent
    if (
        answer == "contradiction"
        or (answer is Truth.YES and False in seen)
        or (answer is Truth.NO and True in seen)
    ):
        return "wrong", f"{text} gave {answer}", spent
    if answer is Truth.UNKNOWN:
        return (
            {(True,): "unknown though true", (False,): "unknown though false"}.get(tuple(seen), "contingent"),
            text,
            spent,
        )
    return {Truth.YES: "proved", Truth.NO: "disproved"}[answer], text, spent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--resume", type=Path, help="where progress is kept")
    parser.add_argument(
        "--show", type=int, default=0, help="print this many pairs that were unknown though true"
    )
    options = parser.parse_args()
    state: dict[str, Any] = {"next": options.first, "counts": {}, "wrong": [], "slowest": 0.0, "seconds": 0.0}
    if options.resume and options.resume.exists():
        state = json.loads(options.resume.read_text())
    counts, start, show = Counter(state["counts"]), time.time() - state["seconds"], options.show
    while state["next"] < options.first + options.pairs:
        what, text, spent = judge(state["next"])
        state["next"] += 1
        counts[what] += 1
        if spent > state["slowest"]:
            state.update(slowest=spent, slowest_pair=text)
        if what == "wrong":
            state["wrong"].append(text)
            print("WRONG", text, flush=True)
        if what == "unknown though true" and show > 0:
            show -= 1
            print("unknown", text)
        if state["next"] % 500 == 0 or state["next"] == options.first + options.pairs:
            state.update(counts=dict(counts), seconds=time.time() - start)
            if options.resume:
                options.resume.write_text(json.dumps(state))
    report(state)
    return 1 if state["wrong"] else 0


def report(state: dict[str, Any]) -> None:
    counts = Counter(state["counts"])
    shown = counts["proved"] + counts["disproved"]
    known = shown + counts["unknown though true"] + counts["unknown though false"]
    print(", ".join(f"{name} {number}" for name, number in sorted(counts.items())))
    print(f"wrong {counts['wrong']}; decided {shown} of {known} that enumeration decides "
          f"({100 * shown / max(known, 1):.1f}%) in {state['seconds']:.0f} s")
    print(f"slowest {1000 * state['slowest']:.1f} ms: {state.get('slowest_pair')}")


if __name__ == "__main__":
    sys.exit(main())
