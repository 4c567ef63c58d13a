"""Index arithmetic in printed C: constants are wider than int, and what may be negative is divided rounding down."""

import numpy as np
import pytest

from stepwell.dialects import load_all, loop
from stepwell.ir.parser import parse_module
from stepwell.lowering.cpu import printer
from stepwell.runtime import cpu

load_all()
pytestmark = pytest.mark.skipif(not cpu.available(), reason="no C compiler")
BODY = """loop.kernel @k(%y: !loop.buffer<i64, global>, %n: index, %d: index) attributes {
    target = "cpu", symbols = ["n"], block = [1, 1, 1], grid = #stepwell.dims<[1, 1, 1]>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  loop.for %zero, %n, %one {binding = "serial"} : (index, index, index) -> () {
  ^bb0(%i: index):
    LINES
    %v = arith.index_cast %q : index to i64
    loop.store %v, %y[%zero] : i64, !loop.buffer<i64, global>
  }
}"""


def kernel(lines):
    module = parse_module(BODY.replace("LINES", "\n".join(lines)))
    return next(op for op in module.walk() if isinstance(op, loop.Kernel))


@pytest.mark.parametrize("wanted, lines", [
    (10**10, ["%c = arith.constant 100000 : index", "%q = arith.muli %c, %c : index"]),
    (2 * (2**31 - 1), ["%c = arith.constant 2147483647 : index", "%q = arith.addi %c, %c : index"]),
    (-(2**31) - 1, ["%c = arith.constant -2147483648 : index", "%q = arith.subi %c, %one : index"]),
    (-(2**31) * 3, ["%c = arith.constant -2147483648 : index", "%t = arith.constant 3 : index",
                    "%q = arith.muli %c, %t : index"]),
    (10**10, ["%c = arith.constant 100000 : index", "%p = arith.cmpi eq, %i, %i : index",
              "%s = arith.select %p, %c, %one : index", "%q = arith.muli %s, %c : index"]),
    (10**10, ["%c = arith.constant 200001 : index", "%h = arith.divui %c, %two : index",
              "%q = arith.muli %h, %h : index"]),
])  # fmt: skip
def test_constants_do_not_overflow_int(wanted, lines):
    made = kernel(["%two = arith.constant 2 : index", *lines])
    y = np.zeros(1, np.int64)
    cpu.build_kernels([made])["k"]([y.ctypes.data], [1, 0], (1, 1, 1))
    assert y[0] == wanted


@pytest.mark.parametrize("dividend, number", [("%d", -7), ("%e", 0)])
def test_what_may_be_negative_rounds_down(dividend, number):
    """Arguments that are no sizes, strides for one, and differences of sizes."""
    made = kernel(["%e = dim.value [n - 11] : index", f"%q = arith.floordivsi {dividend}, %n : index"])
    y = np.zeros(1, np.int64)
    cpu.build_kernels([made])["k"]([y.ctypes.data], [4, number], (1, 1, 1))
    assert y[0] == -2


@pytest.mark.parametrize("dividend", ["%i", "%m", "%s"])
def test_sizes_and_positions_are_divided_as_c_divides(dividend):
    lines = ["%m = dim.value [3 * n + 2] : index", "%s = arith.addi %i, %n : index"]
    text = printer.print_module_source([kernel([*lines, f"%q = arith.floordivsi {dividend}, %n : index"])])
    assert "sw_floordivsi" not in text
