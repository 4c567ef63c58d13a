"""`--check` can fail: what is wrong is called so, what is as exact as the declared dtypes allow is not."""

import numpy as np
import pytest

from stepwell.ir.attributes import f32, f64, i32
from stepwell.runtime.check import compare_one

ONE = np.ones(4, np.float32)


def one(got, exact=ONE, declared=ONE, type=f32):
    arrays = (np.asarray(got, np.float32), np.asarray(exact, np.float64), np.asarray(declared, np.float32))
    return compare_one(*arrays, type)


def changed(value):
    made = ONE.copy()
    made[2] = value
    return made


def test_what_is_equal_agrees():
    found = one(ONE)
    assert found.holds and str(found).startswith("agrees")


@pytest.mark.parametrize("value", [1 + 1e-5, 0.999, -1, 0, 1e30])
def test_an_element_that_is_wrong_differs(value):
    found = one(changed(value))
    assert not found.holds and str(found).startswith("DIFFERS: max error") and not found.places


def test_four_errors_of_the_declared_dtypes_are_allowed():
    declared = changed(1.01)
    assert one(changed(1.039), ONE, declared).holds
    assert not one(changed(1.041), ONE, declared).holds
    assert not one(ONE * np.float32(1.039), ONE, declared).holds, "within the maximum, but everywhere"


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_must_stand_at_its_place(value):
    special = changed(value)
    assert one(special, special, special).holds
    for got, declared in ((special, ONE), (ONE, special), (changed(-value if value == value else 1), special)):
        found = one(got, declared, declared)
        assert not found.holds and found.places == 1 and "1 elements differ in kind or value" in str(found)


@pytest.mark.parametrize("exact", [np.inf, -np.inf, np.nan])
def test_where_f64_gives_no_number_the_declared_one_counts(exact):
    assert one(ONE, changed(exact), ONE).holds
    assert one(changed(1 + 1e-7), changed(exact), ONE).holds
    found = one(changed(5), changed(exact), ONE)
    assert not found.holds and found.places == 1
    assert not one(changed(exact), changed(exact), ONE).holds
    assert not compare_one(np.array([5.0]), np.array([exact]), np.array([1.0]), f64).holds


def test_integers_are_equal():
    a = np.arange(4, dtype=np.int32)
    assert compare_one(a, a, a, i32).holds
    found = compare_one(a + 1, a, a, i32)
    assert not found.holds and found.places == 4 and str(found).startswith("DIFFERS")


def test_nothing_to_compare():
    assert one(np.ones(0), np.ones(0), np.ones(0)).holds


def test_the_command_fails_where_a_kernel_is_wrong(capsys, monkeypatch, tmp_path):
    """The status and the word of `run --check`, when what runs is not what was asked for."""
    from stepwell.runtime import run as command
    from stepwell.runtime.driver import main

    path = tmp_path / "f.mlir"
    path.write_text("func.func @f<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {\n"
                    "  %y = nd.exp %x : (tensor<[n], f32>) -> tensor<[n], f32>\n"
                    "  func.return %y : tensor<[n], f32>\n}\n")  # fmt: skip
    argv = ["run", str(path), "--check", "--target", "cpu"]
    assert main(argv) == 0 and "agrees" in capsys.readouterr().out
    monkeypatch.setattr(command.inputs, "to_host", lambda r: np.asarray(r) * np.float32(1.001))
    assert main(argv) == 1 and "DIFFERS: max error" in capsys.readouterr().out
