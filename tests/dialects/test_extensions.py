"""What an operator of one's own must have, and what its definition takes for granted about sizes."""

import re

import pytest

from stepwell.dialects import expression as e
from stepwell.dialects import load_all
from stepwell.dialects.operator import Operator
from stepwell.ir.attributes import TensorType
from stepwell.ir.definition import FloatTensor, operand, result
from stepwell.ir.diagnostics import IRError
from stepwell.ir.parser import parse_module
from stepwell.ir.registry import DIALECTS, Dialect
from stepwell.ir.verifier import verify
from stepwell.runtime.op_pages import page

load_all()
own = Dialect("own_test", "Operators of this test.")


class Two(Operator):
    x = operand(FloatTensor)
    q = operand(FloatTensor)
    y = result(FloatTensor)

    def infer_types(self):
        return [self.x.type]


def operator(define, **more):
    """Register an operator of two operands with this definition; its name."""
    name = f"own_test.op{len(own.operations)}"
    return own.op(type(f"Op{len(own.operations)}", (Two,), {"__doc__": "A test's.", "name": name, "define": define, **more})).name


def needs(name, x="m, n", q="m, k", where="", out=None):
    """The relations that such an operator needs."""
    found = sorted(set(re.findall(r"[a-z]\w*", f"{x} {q}")))
    head = f"<{', '.join(found)}>" if found else ""
    text = (
        f"func.func @f{head}(%x: tensor<[{x}], f32>, %q: tensor<[{q}], f32>) {where} {{\n"
        f"  %y = {name} %x, %q : (tensor<[{x}], f32>, tensor<[{q}], f32>) -> tensor<[{out or x}], f32>\n  func.return\n}}"
    )
    module = parse_module(text, "f.mlir")
    verify(module)
    (op,) = [op for op in module.walk() if isinstance(op, Operator)]
    return [str(r.relation) for r in op.requirements()]


PLUS = operator(lambda self, x, q: x + q)
SCALED = operator(lambda self, x, q: x * e.reduce_mean(q, [-1], keepdims=True))
SPREAD = operator(lambda self, x, q: x + e.broadcast_to(q, x.shape))
AT = operator(lambda self, x, q: e.from_function(x.shape, lambda i, j: x.at(i, j) * q.at(i, j)))
SHIFTED = operator(lambda self, x, q: e.from_function(x.shape, lambda i, j: q.at(i, j + 1)))
BACKWARDS = operator(lambda self, x, q: e.from_function(x.shape, lambda i, j: q.at(i, q.shape[1] - 1 - j)))
INSIDE = operator(lambda self, x, q: x * e.reduce_sum(e.materialize(e.exp(q) + x), [-1], keepdims=True))


@pytest.mark.parametrize(("name", "q", "wanted"), [
    (PLUS, "m, n", []),
    (PLUS, "n", []),
    (PLUS, "1, n", []),
    (PLUS, "m, k", ["k*k + n - k*n - k == 0"]),  # k is n or 1: the result has n
    (SCALED, "m, k", []),
    (SPREAD, "m, k", ["k*k + n - k*n - k == 0"]),
    (AT, "m, n", []),
    (AT, "m, n + 1", []),
    (AT, "m, k", ["n <= k"]),
    (SHIFTED, "m, n + 1", []),
    (SHIFTED, "m, k", ["n*max(k, n + 1) - k*n == 0"]),  # nothing is read where n is 0
    (BACKWARDS, "m, n", []),
    (BACKWARDS, "m, n + 3", []),
])  # fmt: skip
def test_what_a_definition_takes_for_granted(name, q, wanted):
    assert needs(name, q=q) == wanted


def test_what_is_broadcast_is_read_inside_its_shape():
    rows = operator(
        lambda self, x, q: e.from_function(x.shape, lambda i, j: (q + e.reduce_sum(x, [-1], keepdims=True)).at(i, j))
    )
    assert needs(rows) == ["n <= k"]
    both = operator(lambda self, x, q: e.reduce_sum(e.from_function([*x.shape, 9], lambda i, j, k: (x + q).at(i, k)), [2]))
    assert "9 <= bcast(k, n)" in needs(both) or "9 <= bcast(n, k)" in needs(both)


def test_a_form_of_its_own_states_its_syntax():
    assert "where n % 8 == 0, n <= 99 {" in page("func.func") and "@name<symbols>(" in page("func.func")
    assert "functional-type" not in page("loop.kernel") and "functional-type" not in page("func.func")


def test_a_tensor_inside_a_definition_counts():
    (relation,) = needs(INSIDE)
    assert set(re.findall(r"[a-z]+", relation)) == {"k", "n"}


@pytest.mark.parametrize("name", [PLUS, SPREAD, AT, SHIFTED, BACKWARDS, INSIDE])
def test_definite_mismatches_are_errors_that_name_both(name):
    with pytest.raises(IRError) as caught:
        needs(name, "2, 8", "2, 4")
    message = str(caught.value)
    assert f"'{name}' op" in message and "%q" in message and "4" in message and ("8" in message or "7" in message)


def test_a_result_that_is_not_what_the_shape_rule_says():
    transposed = operator(lambda self, x, q: e.from_function([*reversed(x.shape)], lambda i, j: x.at(j, i)))
    assert needs(transposed) == ["n == m"]
    with pytest.raises(IRError, match=r"is defined with size 3 of axis 0 of result 0, but its shape rule gives 2"):
        needs(transposed, "2, 3")


def test_statements_are_trusted_about_reads_only():
    define = lambda self, x, q: e.from_function(x.shape, lambda i, j: q.at(i, j)) + q  # noqa: E731
    silent = operator(define, shape_requirements=lambda self: ())
    assert needs(silent) == ["k*k + n - k*n - k == 0"]


@pytest.mark.parametrize(("define", "said"), [
    (lambda self, x, q: (x, q), "is defined by 2 tensors, but has 1 results"),
    (lambda self, x, q: 3, "is defined by a int, but result 0 must be a traced tensor"),
    (lambda self, x, q: e.reduce_sum(x, [-1]), "is defined by a tensor of rank 1"),
    (lambda self, x, q: x.nothing, "define of Op.* raised AttributeError: .*test_extensions.py:"),
])  # fmt: skip
def test_definitions_that_cannot_be_traced(define, said):
    define.__name__ = "define"
    with pytest.raises(IRError, match=said.replace("result 0", "(result 0|%y)")):
        needs(operator(define))


# ---------------------------------------------------------------- registration


def made(**parts):
    return type("Mine", (Operator,), {"__doc__": "A test's.", "name": "own_test.mine", "x": operand(), **parts})


COMPLETE = {"infer_types": lambda self: [self.x.type], "define": lambda self, x: x}


@pytest.mark.parametrize(("parts", "said"), [
    ({"define": COMPLETE["define"]}, r"'own_test.mine' \(class Mine\) needs infer_types\(self\)"),
    ({"infer_types": COMPLETE["infer_types"]}, r"\(class Mine\) needs define\(self, \*operands\)"),
    ({**COMPLETE, "precision": "lo"}, "precision = 'lo', but it must be one of low, .*did you mean 'low'"),
    ({**COMPLETE, "name": "own_test.op0"}, r"'own_test.op0' is registered already, by class .*Op0; give Mine another"),
    ({**COMPLETE, "name": None}, 'class Mine needs its name: name = "own_test.mine"'),
])  # fmt: skip
def test_operators_that_lack_something(parts, said):
    before = dict(own.operations)
    with pytest.raises(ValueError, match=said):
        own.op(made(**parts))
    assert own.operations == before


def test_a_dialect_of_a_name_that_is_taken():
    before = DIALECTS["nd"]
    with pytest.raises(ValueError, match="there is a dialect 'nd' already, of module stepwell.dialects.nd_base"):
        Dialect("nd", "Mine.")
    assert DIALECTS["nd"] is before
    try:  # the module that made it may be run again
        assert Dialect("own_test", "Again.") is DIALECTS["own_test"]
    finally:
        DIALECTS["own_test"] = own


def test_shapes_of_results_still_follow_their_operands():
    pair = operator(lambda self, x, q: x, infer_types=lambda self: [TensorType(self.q.type.dims, self.x.type.element)])
    assert needs(pair, "m", "k", out="k") == ["m == k"]
