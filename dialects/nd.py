# ruff: noqa: F401 (this module collects the operators of the others)
"""The `nd` dialect: every operator on tensors that is not of a network. See nd_elementwise, nd_shape,
nd_reduce."""

from .nd_base import nd
from .nd_elementwise import (
    Abs,
    Add,
    And,
    Cast,
    Ceil,
    Clamp,
    Compare,
    Cos,
    Div,
    Erf,
    Exp,
    Exp2,
    Expm1,
    Floor,
    FloorDiv,
    Gelu,
    Log,
    Log1p,
    Log2,
    LogicalNot,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Or,
    Pow,
    Reciprocal,
    Relu,
    Remainder,
    Round,
    Rsqrt,
    Select,
    Sigmoid,
    Sign,
    Silu,
    Sin,
    Softplus,
    Sqrt,
    Square,
    Sub,
    Tanh,
    Xor,
)  # fmt: skip
from .nd_reduce import Argmax, Max, Mean, Min, Prod, Sum
from .nd_shape import Broadcast, Concat, Constant, Iota, Reshape, Slice, Transpose

operator = nd.op  # the decorator that registers an operator
