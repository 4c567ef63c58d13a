"""What schedules must not take for rows or for a matrix product, and rows that read other rows than their own."""

import numpy as np
import pytest

import stepwell
from stepwell.dialects import expression as e
from stepwell.dialects.operator import Operator
from stepwell.ir.attributes import TensorType
from stepwell.ir.definition import FloatTensor, operand, result
from stepwell.ir.diagnostics import IRError
from stepwell.ir.registry import Dialect
from stepwell.lowering.schedules.matmul_cuda import Tile
from stepwell.runtime import api, emulate

rng = np.random.default_rng(7)
forms = Dialect("forms", "operators whose reductions look like sums and rows")


@pytest.fixture(params=["cpu", "emulate"])
def target(request):
    """C, and CUDA C on the emulator with its checks."""
    if request.param == "emulate" and emulate.compiler() is None:
        pytest.skip("no C++ compiler")
    return request.param


def lowered(text, target):
    return api.lower(stepwell.parse(text), target)


@forms.op
class Ring(Operator):
    """Products, combined by l + (r + l * r): (1 + p0) * (1 + p1) * ... - 1."""

    name = "forms.ring"
    x = operand(FloatTensor)
    z = operand(FloatTensor)
    y = result(FloatTensor)
    precision = "keep"

    def infer_types(self):
        return [TensorType((self.x.type.dims[0], self.z.type.dims[1]), self.x.type.element)]

    def define(self, x, z):
        return e.reduce(
            (x.shape[0], z.shape[1]), x.shape[1:], lambda i, j, k: x.at(i, k) * z.at(k, j),
            lambda a, b: a + (b + a * b), [0.0],
        )[0]  # fmt: skip


@forms.op
class Last(Operator):
    """The last element of a row that is not 0."""

    name = "forms.last"
    x = operand(FloatTensor)
    y = result(FloatTensor)
    precision = "keep"

    def infer_types(self):
        return [TensorType(self.x.type.dims[:-1], self.x.type.element)]

    def define(self, x):
        return e.reduce(
            x.shape[:-1], x.shape[-1:], lambda *at: x.at(*at),
            lambda a, b: e.where(e.compare("ne", b, 0.0), b, a), [0.0], commutative=False,
        )[0]  # fmt: skip


@forms.op
class Ordered(Operator):
    """Products of a row and a column, whose sum says that its order matters."""

    name = "forms.ordered"
    x = operand(FloatTensor)
    z = operand(FloatTensor)
    y = result(FloatTensor)
    precision = "keep"

    def infer_types(self):
        return [TensorType((self.x.type.dims[0], self.z.type.dims[1]), self.x.type.element)]

    def define(self, x, z):
        return e.reduce(
            (x.shape[0], z.shape[1]), x.shape[1:], lambda i, j, k: x.at(i, k) * z.at(k, j), lambda a, b: a + b, [0.0],
            associative=False,
        )[0]  # fmt: skip


def product_text(name, attrs=""):
    x, z, y = "tensor<[m, k], f32>", "tensor<[k, n], f32>", "tensor<[m, n], f32>"
    return f"""func.func @f<m, n, k>(%x: {x}, %z: {z}) -> {y} {{
      %y = {name} %x, %z {attrs} : ({x}, {z}) -> {y}
      func.return %y : {y}
    }}"""


LAST = """func.func @f<m, n>(%x: tensor<[m, n], f32>) -> tensor<[m], f32> {
  %y = forms.last %x ATTRS : (tensor<[m, n], f32>) -> tensor<[m], f32>
  func.return %y : tensor<[m], f32>
}"""


def test_a_combiner_that_only_ends_in_a_sum_makes_no_product(target):
    f = stepwell.compile(product_text("forms.ring"), target=target)
    x, z = (rng.standard_normal(s).astype(np.float32) / 4 for s in [(20, 9), (9, 33)])
    wanted = np.prod(1 + x.astype(np.float64)[:, :, None] * z[None], axis=1) - 1
    np.testing.assert_allclose(f(x, z), wanted, rtol=1e-4, atol=1e-5)


def test_a_combiner_that_does_not_commute_keeps_its_order(target):
    f = stepwell.compile(LAST.replace("ATTRS", ""), target=target)
    x = rng.integers(0, 3, (18, 137)).astype(np.float32)
    x[3] = 0
    wanted = [next((v for v in row[::-1] if v), 0) for row in x]
    np.testing.assert_array_equal(f(x), wanted)


@pytest.mark.parametrize("target, variant", [("cpu", "rows_cpu"), ("cuda", "rows_warp")])
def test_rows_refuse_what_does_not_commute(target, variant):
    text = LAST.replace("ATTRS", f'{{variant = "{variant}"}}')
    with pytest.raises(IRError, match=f"cannot take variant '{variant}': its combiner is not associative and commutat"):
        lowered(text, target)


@pytest.mark.parametrize("target, variant", [("cpu", "matmul_cpu"), ("cuda", "matmul_tiles")])
@pytest.mark.parametrize("name, why", [("ring", "it is not a sum of products"), ("ordered", "its combiner is not ass")])
def test_products_refuse_what_is_no_sum(target, variant, name, why):
    text = product_text(f"forms.{name}", f'{{variant = "{variant}"}}')
    with pytest.raises(IRError, match=f"cannot take variant '{variant}': {why}"):
        lowered(text, target)


def softmax(x):
    made = np.exp(x - x.max(-1, keepdims=True))
    return made / made.sum(-1, keepdims=True)


@pytest.mark.parametrize("n", [37, 64, 600, 9001])
@pytest.mark.parametrize("permutation", [(1, 0, 2), None])
def test_a_row_that_reads_another_row(target, n, permutation):
    """x is loaded into registers for its own row; the other row comes from memory."""
    t = "tensor<[a, a, n], f32>"
    move = f"nd.transpose %x {{permutation = array<i64: 1, 0, 2>}} : ({t}) -> {t}" if permutation else (
        "nd.slice %x {starts = #stepwell.dims<[-1, 0, 0]>, limits = #stepwell.dims<[-1 - a, a, n]>, steps = [-1, 1, 1]} "
        f": ({t}) -> {t}"
    )
    f = _COMPILED.get((target, permutation)) or stepwell.compile(f"""func.func @f<a, n>(%x: {t}) -> {t} {{
      %t = {move}
      %s = nd.add %x, %t : ({t}, {t}) -> {t}
      %y = nn.softmax %s : ({t}) -> {t}
      func.return %y : {t}
    }}""", target=target)
    _COMPILED[target, permutation] = f
    x = rng.standard_normal((3, 3, n)).astype(np.float32)
    other = x.transpose(permutation) if permutation else x[::-1]
    np.testing.assert_allclose(f(x), softmax(x.astype(np.float64) + other), rtol=1e-5, atol=1e-7)


_COMPILED = {}


def test_a_forced_variant_that_never_fits_is_refused():
    t = "tensor<[m, 5000], f32>"
    text = f"""func.func @f<m>(%x: {t}) -> {t} {{
      %y = nn.softmax %x {{variant = "rows_short"}} : ({t}) -> {t}
      func.return %y : {t}
    }}"""
    with pytest.raises(IRError, match="cannot take variant 'rows_short': it needs 5000 <= 128, which is never so"):
        lowered(text, "cuda")


@pytest.mark.parametrize("sizes", [(60, 64, 16, 8, 4), (64, 64, 16, 6, 4), (64, 64, 1, 4, 4), (66, 66, 16, 3, 3)])
def test_tiles_that_threads_cannot_share(sizes):
    with pytest.raises(AssertionError):
        Tile(*sizes)
