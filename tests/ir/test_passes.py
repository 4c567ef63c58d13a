"""Pipelines as text, options, errors with a place, running, timing."""

import enum
import io
from typing import Literal

import attrs
import pytest

from stepwell.dialects import arith, builtin, func  # noqa: F401
from stepwell.ir.attributes import FloatType, Type, f16, f32
from stepwell.ir.diagnostics import IRError
from stepwell.ir.parser import parse_module
from stepwell.ir.passes import PASSES, Nested, Observer, Pass, PassManager, Timing
from stepwell.lowering import canonicalize, cse  # noqa: F401


class Mode(enum.Enum):
    FAST = 1
    EXACT = 2


@attrs.define
class Everything(Pass):
    """Has an option of every kind."""

    name = "test-everything"
    dtype: FloatType = f16
    any_type: Type | None = None
    keep: tuple[str, ...] = ()
    sizes: tuple[int, ...] = (1, 2)
    count: int = 3
    ratio: float = 0.5
    flag: bool = False
    mode: Mode = Mode.FAST
    level: Literal["low", "high"] = "low"
    text: str = ""

    def run(self, module):
        pass


@attrs.define
class Break(Pass):
    """Leaves a function whose result type is wrong."""

    name = "test-break"

    def run(self, module):
        op = next(op for op in module.walk() if op.op_name == "func.return")
        op.operands = ()


@attrs.define
class Record(Pass):
    """Remembers what it ran on."""

    name = "test-record"
    anchor = None
    seen = []

    def run(self, op):
        self.seen.append(op.value_of("sym_name"))


@pytest.fixture(autouse=True)
def _forget():
    Record.seen.clear()


SOURCE = "func.func @f(%a: i32) -> i32 { return %a : i32 }\nfunc.func @g() { return }"


def test_options_of_every_kind():
    text = (
        "test-everything{dtype=bf16 any-type=tensor<4xf32> keep=exp,softmax sizes=8,16 count=-7 ratio=1e-3 flag=true "
        'mode=exact level=high text="two words"}'
    )
    (step,) = PassManager.parse(text).items
    assert step.dtype is FloatType("bf16") and str(step.any_type) == "tensor<4xf32>"
    assert step.keep == ("exp", "softmax") and step.sizes == (8, 16)
    assert (step.count, step.ratio, step.flag) == (-7, 1e-3, True)
    assert (step.mode, step.level, step.text) == (Mode.EXACT, "high", "two words")
    assert PassManager.parse(str(step)).items == [step]


def test_defaults_are_not_written():
    assert str(Everything()) == "test-everything"
    assert str(Everything(dtype=f32, flag=True)) == "test-everything{dtype=f32 flag=true}"
    assert PassManager.parse("test-everything{flag}").items == [Everything(flag=True)]
    assert PassManager.parse("test-everything{}").items == [Everything()]


def test_underscores_are_dashes():
    assert PassManager.parse("test-everything{any_type=f32}").items == [Everything(any_type=f32)]


@pytest.mark.parametrize(
    "text",
    ["module(\n  cse,\n  func( canonicalize , cse )\n)", "module(cse,func(canonicalize,cse))\n", "\tmodule(\tcse,func(canonicalize,\tcse))",
     "builtin.module(cse,func.func(canonicalize,cse))"],
)  # fmt: skip
def test_white_space(text):
    """Corpus D23."""
    assert str(PassManager.parse(text)) == "cse,func.func(canonicalize,cse)"


def test_empty_lists():
    assert PassManager.parse("module( )").items == []
    assert PassManager.parse("").items == []
    assert PassManager.parse("func()").items == [Nested("func.func")]


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("module(cse,)", "expected a pass after ','", 11),
        ("cse,", "expected a pass after ','", 4),
        ("cse,canonicalise", "unknown pass 'canonicalise'; did you mean 'canonicalize'?", 5),
        ("cse{x=1}", "unknown option 'x' of pass 'cse'", 5),
        ("test-record{x=1}", "pass 'test-record' has no options", 13),
        (
            "test-everything{dtyp=f16}",
            "unknown option 'dtyp' of pass 'test-everything'; did you mean 'dtype'?",
            17,
        ),
        (
            "test-everything{count=abc}",
            "option 'count' of pass 'test-everything' must be an integer, not 'abc'",
            17,
        ),
        ("test-everything{sizes}", "option 'sizes' of pass 'test-everything' needs a value", 17),
        ("test-everything{count=8 count=16}", "option 'count' of pass 'test-everything' is given twice", 25),
        ("test-everything{dtype=i32}", "must be a float type, not 'i32'", 17),
        ("test-everything{dtype=zz}", "must be a type such as f16, not 'zz'", 17),
        ("test-everything{mode=exakt}", "must be fast or exact, not 'exakt'; did you mean 'exact'?", 17),
        ("test-everything{flag=maybe}", "must be true or false", 17),
        ("cse cse", "expected ',' or the end", 5),
        ("cse)", "')' without '('", 4),
        ("func(cse", "expected ')' to close", 1),
        ("cse{x", "expected '}' after the options of 'cse'", 4),
        (",cse", "expected the name of a pass", 1),
    ],
)
def test_errors_have_a_place(text, message, column):
    """Corpus D25 among them."""
    with pytest.raises(IRError) as caught:
        PassManager.parse(text)
    shown = str(caught.value)
    assert message in shown
    assert f"<pipeline>:1:{column}: error" in shown
    assert text in shown and "^" in shown


def test_unknown_names_list_what_there_is():
    with pytest.raises(IRError, match=r"the passes are: .*canonicalize.*cse"):
        PassManager.parse("nothing")
    with pytest.raises(IRError, match="its options are: dtype, any-type, keep"):
        PassManager.parse("test-everything{nothing=1}")


def test_nesting_runs_on_each_function():
    module = parse_module(SOURCE)
    PassManager.parse("test-record,func.func(test-record)").run(module)
    assert Record.seen == [None, "f", "g"]


def test_a_pass_of_modules_does_not_run_on_functions():
    with pytest.raises(IRError, match=r"pass 'test-everything' runs on 'builtin.module', not on 'func.func'"):
        PassManager.parse("func.func(test-everything)").run(parse_module(SOURCE))


def test_the_pass_that_broke_the_ir_is_named():
    with pytest.raises(IRError, match="legal before pass 'test-break'"):
        PassManager.parse("cse,test-break").run(parse_module(SOURCE))
    PassManager.parse("cse,test-break").run(parse_module(SOURCE), verify_each=False)


def test_illegal_input_is_found_before_any_pass():
    module = parse_module(SOURCE)
    Break().run(module)
    with pytest.raises(IRError) as caught:
        PassManager.parse("cse").run(module)
    assert "legal before" not in str(caught.value)


def test_printing_timing_and_observers():
    module, stream, timing = parse_module(SOURCE), io.StringIO(), Timing()
    seen = []

    class Watcher(Observer):
        def before(self, step, op):
            seen.append(("before", str(step)))

        def after(self, step, op):
            seen.append(("after", str(step)))

    pipeline = PassManager.parse("cse,func.func(canonicalize)")
    pipeline.run(module, print_after_all=stream, timing=timing, observers=[Watcher()])
    assert stream.getvalue().count("// ----- after cse -----") == 1
    assert stream.getvalue().count("// ----- after canonicalize -----") == 2
    assert seen[0] == ("before", "cse") and len(seen) == 6
    lines = timing.report().splitlines()
    names = [line.split("%")[1] for line in lines[1:]]
    assert names[0].strip() == "total"
    assert [n.rstrip() for n in names if "canonicalize" in n] == ["      canonicalize"] * 2  # of two functions
    assert "100.0%" in lines[1]


def test_passes_are_registered_by_name():
    assert PASSES["cse"].__name__ == "Cse"
    assert attrs.has(PASSES["test-everything"]) and PASSES["test-everything"] is Everything
