"""Loop kernels as C text: what CUDA C and C share.

A value that is used once, in its own block, becomes part of its user's expression, a load only where nothing in
between writes what it reads; every other value becomes a variable named after the IR. All that a target has to say
of its own stands in its prelude, as helpers and macros named `sw_...` and `SW_...`, of which a source holds those
that it uses.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..dialects import loop
from ..dialects.scalar import unsupported
from ..ir.attributes import IndexType, VectorType, index
from ..ir.core import Block, BlockArgument, Operation, Value
from ..ir.printer import print_operation
from .c_scalars import (
    ADD,
    ATOM,
    MUL,
    UNARY,
    CTypes,
    Expr,
    helper,
    index_literal,
    scalar,
)
from .index_facts import dim_of, nonnegative, nonnegative_tree, positive
from .names import Names, comment, identifier
from .prelude import Prelude
from .vector_printer import VectorPrinter

_DIVISIONS = {"divsi": "/", "divui": "/", "floordivsi": "/", "remsi": "%", "remui": "%"}
LONGEST, FURTHEST = 90, 200  # characters of an inlined expression; operations between it and its user
TREE = {"add": ("+", ADD), "sub": ("-", ADD), "mul": ("*", MUL)}


# ---------------------------------------------------------------- kernels


class KernelPrinter(VectorPrinter):
    """Prints one kernel; subclasses say what differs between targets."""

    position: dict[str, str] = {}  # loop.id -> expression; 0 and 1 where it is absent

    def __init__(self, kernel: loop.Kernel, name: str) -> None:
        self.kernel, self.name = kernel, name
        self.c = CTypes(kernel.index_bits)
        self.index = self.c.name(IndexType())
        self.names = Names([name])
        self.lines: list[str] = []
        self.places: list[Operation] = []  # the operation of each line
        self.at: Operation = kernel
        self.depth = 1
        self.values = {}
        self.helpers = {}
        self.undeclared: dict[Value, str] = {}  # registers that their first store declares
        for argument in kernel.body.arguments:
            self.values[argument] = Expr(self.names.fresh(argument.hint, "a"))
        self.symbols = {s: self.values[a].text for s, a in kernel.symbol_arguments.items()}

    # -- text

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)
        self.places.append(self.at)

    def remark(self, text: str) -> None:
        self.line(f"// {comment(text)}")

    def function(self) -> str:
        """The kernel as a function."""
        self.block(self.kernel.body)
        doc = [f"// {comment(line)}\n" for line in (self.kernel.doc or "").splitlines()]
        return "".join(doc) + self.signature() + " {\n" + "\n".join([*self.lines, "}"]) + "\n"

    def signature(self) -> str:
        parameters = [self.parameter(a) for a in self.kernel.body.arguments]
        head = self.head()
        text = f"{head}({', '.join(parameters)})"
        if len(text) < 110:
            return text
        return f"{head}(\n    " + ",\n    ".join(parameters) + ")"

    def parameter(self, argument: BlockArgument) -> str:
        name = self.values[argument].text
        if not isinstance(argument.type, loop.BufferType):
            return f"{self.c.name(argument.type)} {name}"
        const = "const " if argument.type.constant else ""
        return self.pointer(f"{const}{self.c.name(argument.type.scalar)}", name)

    def head(self) -> str:
        """What stands before the parameters."""
        raise NotImplementedError

    def pointer(self, element: str, name: str) -> str:
        """A buffer parameter."""
        raise NotImplementedError

    def declare_shared(self, op: loop.Alloc, element: str, name: str, size: int) -> str:
        """The declaration of a shared buffer."""
        raise NotImplementedError

    def declare_register(self, element: str, name: str) -> str:
        """The declaration of a register buffer of one scalar that is not set at once."""
        return f"{element} {name};"

    def declare_registers(self, element: str, name: str, size: int) -> str:
        """The declaration of a register buffer of several elements."""
        return f"{element} {name}[{size}];"

    def bounds(self, op: loop.For, lo: Expr, step: Expr) -> tuple[str, str]:
        """Where a loop starts, and how far it goes at a time."""
        return lo.text, step.text

    # -- statements

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.at = op
            handler = self.STATEMENTS.get(op.op_name)
            if handler is not None:
                handler(self, op)
            elif len(op.results) == 1:
                self.expression(op)
            else:
                raise op.error("cannot be printed")

    def nested(self, block: Block) -> None:
        self.names.push()
        self.depth += 1
        self.block(block)
        self.depth -= 1
        self.names.pop()

    def for_(self, op: loop.For) -> None:
        lo, hi, step = (self.values[v] for v in op.operands)
        if op.binding in loop.RESERVED:
            raise op.error(f"cannot be printed: the binding '{op.binding}' has no form yet")
        start, stride = self.bounds(op, lo, step)
        self.names.push()
        name = self.names.fresh(op.index.hint, "i")
        self.values[op.index] = Expr(name)
        dim = dim_of(op.hi)
        self.remark(op.doc or f"{name} over {hi.text if dim is None else dim}")
        if op.binding in ("unroll", "vector"):
            self.line(f"SW_{op.binding.upper()}")
        advance = f"++{name}" if stride == "1" else f"{name} += {stride}"
        self.line(f"for ({self.index} {name} = {start}; {name} < {hi.at(ADD)}; {advance}) {{")
        self.nested(op.body)
        self.line("}")
        self.names.pop()

    def if_(self, op: loop.If) -> None:
        reason = f"  // {comment(op.reason)}" if op.reason else ""
        self.line(f"if ({self.values[op.condition].text}) {{{reason}")
        self.nested(op.then.block)
        if op.otherwise is not None:
            self.line("} else {")
            self.nested(op.otherwise.block)
        self.line("}")

    def alloc(self, op: loop.Alloc) -> None:
        type = op.buffer.type
        name = self.names.fresh(op.buffer.hint, "tile" if type.space == "shared" else "acc")
        self.values[op.buffer] = Expr(name)
        element = self.c.name(type.scalar)
        if type.space == "shared":
            self.line(self.declare_shared(op, element, name, type.size))
        elif type.size == 1 and _first_stored(op):
            self.undeclared[op.buffer] = f"{element} "
        else:
            scalar = type.size == 1 and not isinstance(type.element, VectorType)
            self.line(self.declare_register(element, name) if scalar
                      else f"{element} {name};" if type.size == 1
                      else self.declare_registers(element, name, type.size))  # fmt: skip

    def store(self, op: loop.Store) -> None:
        value, place = self.values[op.value], self.place(op.buffer, op.index)
        place = self.undeclared.pop(op.buffer, "") + place
        if self.by_vector(op.buffer, op.value):
            self.line(f"{self.access('store', op, op.value)}({self.address(op)}, {value.text});")
        else:
            self.line(f"{place} = {value.text};")

    def place(self, buffer: Value, at: Value) -> str:
        """An element as something to read or assign."""
        name = self.values[buffer].text
        single = buffer.type.space == "register" and buffer.type.size == 1  # type: ignore[attr-defined]
        return name if single else f"{name}[{self.values[at].text}]"

    def address(self, op: Any) -> str:
        name, at = self.values[op.buffer].text, self.values[op.index]
        return name if at.text == "0" else f"{name} + {at.at(ADD)}"

    @staticmethod
    def by_vector(buffer: Value, value: Value) -> bool:
        """Whether an access moves several elements."""
        return isinstance(value.type, VectorType) and not isinstance(buffer.type.element, VectorType)  # type: ignore[attr-defined]

    def access(self, what: str, op: Any, value: Value) -> str:
        return f"sw_{what}{'_aligned' if op.aligned else ''}_{self.c.suffix(value.type)}"

    def barrier(self, op: Operation) -> None:
        self.line(f"sw_{op.op_name.partition('.')[2]}();")

    def shuffle(self, op: loop.Shuffle) -> None:
        raise op.error("cannot be printed: the target has no lanes")

    def ballot(self, op: loop.Ballot) -> None:
        raise op.error("cannot be printed: the target has no lanes")

    def atomic(self, op: loop.Atomic) -> None:
        helper = f"sw_atomic_{op.kind}_{self.c.suffix(op.value.type)}"
        made = Expr(f"{helper}({self.address(op)}, {self.values[op.value].text})")
        if op.old.uses:
            self.values[op.old] = self.variable(op.old, made)
        else:
            self.line(f"{made.text};")

    STATEMENTS: ClassVar[dict[str, Callable[[Any, Any], None]]] = {
        "loop.for": for_, "loop.if": if_, "loop.alloc": alloc, "loop.store": store, "loop.barrier": barrier,
        "loop.warp_barrier": barrier, "loop.shuffle": lambda self, op: self.shuffle(op),
        "loop.ballot": lambda self, op: self.ballot(op), "loop.atomic": atomic,
    }  # fmt: skip

    # -- expressions

    def expression(self, op: Operation) -> None:
        result = op.results[0]
        if not result.uses:
            return
        reason = unsupported(result.type, (index,))
        if reason is not None:
            raise op.error(f"gives '{result.type}', which cannot be printed: {reason}")
        made = self.value(op)
        if not (self.is_free(op, made) or self.joins_user(op, made)):
            made = self.variable(result, made)
        self.values[result] = made

    def variable(self, result: Value, made: Expr) -> Expr:
        """Emit `type name = expression;`."""
        op = result.owner
        source = self.values[op.buffer].text if isinstance(op, loop.Load) else ""
        name = self.names.fresh(result.hint, f"{source}_value" if source else "v")
        self.line(f"{self.c.name(result.type)} {name} = {made.text};")
        return Expr(name)

    def is_free(self, op: Operation, made: Expr) -> bool:
        """Constants and single names are written out at each use."""
        literal = op.op_name == "arith.constant" or made.number is not None
        return literal or (not made.reads and made.text.isidentifier())

    def joins_user(self, op: Operation, made: Expr) -> bool:
        """Whether the expression may be written where it is used."""
        uses = op.results[0].uses
        user = next(iter(uses))
        if sum(uses.values()) != 1 or user.parent is not op.parent or len(made.text) > LONGEST:
            return False
        if isinstance(user, loop.For) and made.reads:
            return False
        if isinstance(user, loop.Extract) and not made.text.endswith(")"):
            return False  # an element of a buffer is read as a whole, then parted
        return not made.reads or not self.changed_between(op, user, made.reads)

    def changed_between(self, op: Operation, user: Operation, reads: frozenset[Value]) -> bool:
        at, seen = op.next, 0
        while at is not None and at is not user:
            seen += 1
            if seen > FURTHEST or any(_changes(inner, reads) for inner in at.walk()):
                return True
            at = at.next
        return False

    def value(self, op: Operation) -> Expr:
        handler = self.VALUES.get(op.op_name)
        if handler is not None:
            return handler(self, op)
        if any(isinstance(v.type, VectorType) for v in (*op.operands, *op.results)):
            return self.vector(op)
        return self.division(op) or scalar(self.use(op))

    def division(self, op: Operation) -> Expr | None:
        """A quotient of sizes as C divides, where nothing is negative and the divisor is not 0."""
        symbol = _DIVISIONS.get(op.op_name.partition(".")[2])
        if symbol is None or not isinstance(op.results[0].type, IndexType):
            return None
        a, b = op.operands
        if not (nonnegative(a) and positive(b, op)):
            return None
        left, right = self.values[a], self.values[b]
        if left.number is not None and right.number is not None:
            return index_literal(left.number // right.number if symbol == "/" else left.number % right.number)
        return Expr(f"{left.at(MUL)} {symbol} {right.at(UNARY)}", MUL, left.reads | right.reads)

    def load(self, op: loop.Load) -> Expr:
        reads = frozenset() if op.buffer.type.constant else frozenset((op.buffer,))
        reads |= self.values[op.index].reads
        if self.by_vector(op.buffer, op.value):
            return Expr(f"{self.access('load', op, op.value)}({self.address(op)})", ATOM, reads)
        return Expr(self.place(op.buffer, op.index), ATOM, reads)

    def id(self, op: loop.Id) -> Expr:
        return Expr(self.position.get(op.which, "1" if "dim" in op.which else "0"))

    def dim(self, op: Operation) -> Expr:
        found = dim_of(op.results[0])
        if found is None:
            raise op.error("has no dim")
        return self.tree(found.display_tree())

    def tree(self, tree: tuple[Any, ...]) -> Expr:
        """A dim as an expression over the kernel's symbols."""
        kind, *rest = tree
        if kind == "const":
            return index_literal(rest[0])
        if kind == "sym":
            if rest[0] not in self.symbols:
                raise self.at.error(f"uses dim symbol '{rest[0]}', no argument of kernel '{self.kernel.sym_name}'")
            return Expr(self.symbols[rest[0]])
        left, right = map(self.tree, rest)
        if kind in TREE:
            symbol, rank = TREE[kind]
            return Expr(f"{left.at(rank)} {symbol} {right.at(rank + 1)}", rank)
        return self.dim_call(kind, left, right, rest)

    def dim_call(self, kind: str, left: Expr, right: Expr, trees: Sequence[Any]) -> Expr:
        simple = trees[1][0] == "const" and trees[1][1] > 0 and nonnegative_tree(trees[0])
        if simple and kind == "ceildiv":
            return Expr(f"({left.at(ADD)} + {trees[1][1] - 1}) / {right.text}", MUL)
        if simple and kind in ("floordiv", "mod"):
            return Expr(f"{left.at(MUL)} {'/' if kind == 'floordiv' else '%'} {right.text}", MUL)
        if kind == "mod":  # what rounding down leaves
            floor = helper("floordivsi", IndexType(), args=[left, right], c=self.c)
            return Expr(f"{left.at(ADD)} - {floor.text} * {right.at(UNARY)}", ADD)
        names = {"floordiv": "floordivsi", "ceildiv": "ceildivsi", "max": "maxsi", "min": "minsi"}
        return helper(names.get(kind, kind), IndexType(), args=[left, right], c=self.c)

    VALUES: ClassVar[dict[str, Callable[[Any, Any], Expr]]] = {
        "loop.load": load, "loop.id": id, "dim.value": dim, **VectorPrinter.VALUES,
    }  # fmt: skip


def _first_stored(op: loop.Alloc) -> bool:
    """Whether a store in the same block is the first use of a buffer."""
    at = op.next
    while at is not None and not at.regions:
        if op.buffer in at.operands:
            return isinstance(at, loop.Store)
        at = at.next
    return False


def _changes(op: Operation, reads: frozenset[Value]) -> bool:
    """Whether `op` may write one of these buffers, or let other threads do so."""
    if isinstance(op, (loop.Store, loop.Atomic)):
        return op.buffer in reads
    if isinstance(op, (loop.Barrier, loop.WarpBarrier)):
        return any(b.type.space != "register" for b in reads)  # type: ignore[attr-defined]
    return not isinstance(op, (loop.For, loop.If)) and op.op_name.startswith("rt.")


# ---------------------------------------------------------------- modules


def function_names(kernels: Sequence[loop.Kernel]) -> list[str]:
    """The C names of kernels that are printed together, in order; `sym_name` itself wherever C allows it."""
    names = Names(("buffers", "sizes"))  # what the parameters of C's entries are called
    return [names.fresh(identifier(k.sym_name, "kernel")) for k in kernels]


def print_parts(
    kernels: Sequence[loop.Kernel], printer: type[KernelPrinter]
) -> tuple[str, str, dict[int, Operation]]:
    """The prelude that kernels share, their functions, and which operation stands on each line of these (from 0)."""
    printers = [printer(k, name) for k, name in zip(kernels, function_names(kernels))]
    functions = [p.function() for p in printers]
    helpers: dict[str, str] = {}
    places: dict[int, Operation] = {}
    end = 0
    for made, text in zip(printers, functions):
        helpers.update(made.helpers)
        end += text.count("\n") + 1  # an empty line follows; a brace ends the function
        places.update(zip(range(end - 2 - len(made.places), end), made.places))
    body = "\n".join(functions)
    return printer.prelude.closure(body, helpers), body, places


def print_source(kernels: Sequence[loop.Kernel], printer: type[KernelPrinter], suffix: str, title: str) -> str:
    """Kernels behind the prelude that they share. With STEPWELL_KERNEL_DUMP set the text is also left
    there, and the modules that the kernels are part of."""
    prelude, body, _ = print_parts(kernels, printer)
    source = f"// {comment(title)}\n\n{prelude}\n{body}"
    folder = os.environ.get("STEPWELL_KERNEL_DUMP")
    if folder:
        _dump(Path(folder), source, suffix)
        for kernel in kernels:
            _dump(Path(folder), print_operation(kernel), f"{suffix}.kernel")
        roots = {id(root): root for root in map(_root, kernels)}
        for root in roots.values():
            if any(op.op_name == "rt.launch" for op in root.walk()):
                _dump(Path(folder), print_operation(root) + "\n", f"{suffix}.mlir")
    return source


def _root(op: Operation) -> Operation:
    while op.parent_op is not None:
        op = op.parent_op
    return op


def _dump(folder: Path, source: str, suffix: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / (hashlib.sha256(source.encode()).hexdigest()[:24] + suffix)
    if not place.exists():
        part = place.with_suffix(f".{os.getpid()}.part")
        part.write_text(source, encoding="utf-8")
        part.replace(place)


__all__ = ["KernelPrinter", "Prelude", "function_names", "print_source"]
