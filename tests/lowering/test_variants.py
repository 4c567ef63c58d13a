"""What registering a variant refuses."""

import pytest

from stepwell.dialects import load_all, nn
from stepwell.ir.attributes import f16, f32
from stepwell.ir.diagnostics import IRError
from stepwell.ir.parser import parse_module
from stepwell.ir.passes import PassManager
from stepwell.lowering import load_all as load_passes
from stepwell.lowering.variants import VARIANTS, Variant, register, variant

load_all()
load_passes()
TEXT = """func.func @f<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {
  %y = nd.relu %x : (tensor<[n], f32>) -> tensor<[n], f32>
  func.return %y : tensor<[n], f32>
}
"""


@pytest.fixture
def name():
    yield "test_variant"
    VARIANTS.pop("test_variant", None)


def schedule(arm):
    raise AssertionError("not taken")


def resolve():
    PassManager.parse("fuse,resolve{target=cpu}").run(parse_module(TEXT, "f.mlir"))


@pytest.mark.parametrize(("given", "said"), [
    ({"target": "gpu"}, "is for target 'gpu', which does not exist.* it must be 'cuda' or 'cpu'"),
    ({"dtypes": ("f33",)}, "has dtype 'f33', but it must be a type of elements"),
    ({"dtypes": (float,)}, "has dtype <class 'float'>"),
    ({"dtypes": "f32"}, r"has dtypes = 'f32', but it must be a tuple, as in \('f32',\)"),
    ({"operators": "nd.relu"}, "has operators = 'nd.relu', but it must be a tuple"),
    ({"operators": (3,)}, "has operator 3, but it must be a name"),
])  # fmt: skip
def test_variants_that_are_refused(name, given, said):
    with pytest.raises(ValueError, match=f"variant '{name}' {said}"):
        variant(name, **{"target": "cpu", **given})(schedule)
    assert name not in VARIANTS


def test_types_by_their_text_and_operators_by_their_class(name):
    variant(name, target="cpu", operators=(nn.Softmax, "nn.rms_norm"), dtypes=("f32", f16))(schedule)
    made = VARIANTS[name]
    assert made.dtypes == (f32, f16) and made.operators == ("nn.softmax", "nn.rms_norm")


def test_an_unknown_operator_of_a_known_dialect(name):
    variant(name, target="cpu", operators=("nn.sofmax",))(schedule)
    with pytest.raises(IRError, match="'nn.sofmax', which is not registered; did you mean 'nn.softmax'") as caught:
        resolve()
    assert "test_variants.py" in str(caught.value.diagnostics[0].location)


def test_an_operator_of_an_unknown_dialect(name):
    variant(name, target="cpu", operators=("absent.softmax",))(schedule)
    with pytest.warns(UserWarning, match="'absent.softmax', which is not registered; did you mean"):
        resolve()
    resolve()  # said once


def test_a_name_is_taken_once_but_a_module_may_run_again(name):
    for _ in range(2):
        variant(name, target="cpu")(schedule)
    with pytest.raises(ValueError, match=f"variant '{name}' is registered already"):
        variant(name, target="cpu")(lambda arm: None)
    with pytest.raises(ValueError, match="variant 'generic_cpu' is registered already"):
        register(Variant("generic_cpu", "cpu", schedule))
