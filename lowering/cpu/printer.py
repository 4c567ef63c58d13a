"""Loop kernels as GNU C (gcc 10 or later, clang)."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects import loop
from ...ir.attributes import IndexType, Type, VectorType, i1
from ..c_scalars import AND, UNARY, Expr
from ..printer_base import KernelPrinter, print_source
from .prelude import PRELUDE, lane_type

ENTRY = "sw_entry_"


class CPrinter(KernelPrinter):
    """A kernel as a static function, and an entry that takes arrays of pointers and of numbers."""

    prelude = PRELUDE
    lane = "{0}[{1}]"

    def function(self) -> str:
        return super().function() + "\n" + self.entry()

    def head(self) -> str:
        return f"static void {self.name}"

    def pointer(self, element: str, name: str) -> str:
        return f"{element} *restrict {name}"

    def declare_shared(self, op: loop.Alloc, element: str, name: str, size: int) -> str:
        return f"static _Thread_local {element} {name}[{size}] __attribute__((aligned(64)));"

    def entry(self) -> str:
        """`void sw_entry_NAME(buffers, sizes)`: a number that is no index has its bits in a slot of 8 bytes."""
        arguments = [f"buffers[{i}]" for i in range(len(self.kernel.buffers))]
        for at, argument in enumerate(self.kernel.scalars):
            slot = f"sizes[{at}]"
            plain = isinstance(argument.type, IndexType)
            arguments.append(slot if plain else f"sw_slot_{self.c.suffix(argument.type)}({slot})")
        return (
            f"void {ENTRY}{self.name}(void *const *buffers, const long long *sizes) {{\n"
            f"    {self.name}({', '.join(arguments)});\n}}\n"
        )

    # Lanes are worked on in arrays: gcc vectorises loops over those, and gcc 12 fails on loops over subscripts of
    # vectors (wrong signs of masks, crashes).

    def element(self, name: str, type: Type) -> Expr:
        if not isinstance(type, VectorType):
            return Expr(name)
        return Expr(f"{name}_[i] & 1", AND) if type.element is i1 and name != "r" else Expr(f"{name}_[i]")

    def opened(self, name: str, type: VectorType) -> str:
        return f"{self.array(name, type)} __builtin_memcpy({name}_, &{name}, sizeof {name});"

    def results(self, type: Type) -> list[str]:
        assert isinstance(type, VectorType)
        return [f"{self.c.name(type)} r;", self.array("r", type)]

    def closed(self, type: Type) -> list[str]:
        return ["__builtin_memcpy(&r, r_, sizeof r);", "return r;"]

    def array(self, name: str, type: VectorType) -> str:
        return f"{lane_type(self.c.suffix(type.element))} {name}_[{type.shape[0]}];"

    def held(self, made: Expr, type: Type) -> Expr:
        return Expr(f"-({made.text})", UNARY) if type is i1 else made


def print_module_source(kernels: Sequence[loop.Kernel]) -> str:
    """Kernels behind one prelude."""
    return print_source(kernels, CPrinter, ".c", f"C: {', '.join(k.sym_name for k in kernels)}")
