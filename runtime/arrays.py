"""Arrays of the two devices: NumPy and CuPy inside, PyTorch at the door, nothing copied on the way in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dialects import loop
from ..dialects.scalar import dtype_of
from ..dialects.signature import Parameter
from ..ir.attributes import FloatType, IndexType, IntegerType, Location, TensorType, i1, unknown
from ..ir.diagnostics import IRError

Progress = Callable[[str, int, int], None]
# PyTorch's dtypes that NumPy does not know travel as integers of the same width.
_TORCH_BITS = {"bfloat16": ("int16", "bfloat16"), "float8_e4m3fn": ("uint8", "float8_e4m3fn"),
               "float8_e5m2": ("uint8", "float8_e5m2")}  # fmt: skip


def torch_or_none() -> Any:
    """PyTorch if the program has imported it; it is never imported here."""
    return sys.modules.get("torch")


class Arrays:
    """What a device needs to know about arrays; `native` is its array class."""

    native: type
    device = "cpu"

    def kind(self, argument: Any) -> str | None:
        torch = torch_or_none()
        if torch is not None and isinstance(argument, torch.Tensor):
            return "torch"
        return "native" if isinstance(argument, self.native) else None

    def accept(self, argument: Any, parameter: Parameter) -> Any:
        """The buffer of a tensor argument, or the value of a scalar one; IRError where it does not fit."""
        if not isinstance(parameter.type, TensorType):
            return _scalar(argument, parameter)
        array = self._array(argument, f"argument %{parameter.name}", parameter)
        _check_dtype(array, parameter.type, f"argument %{parameter.name}", parameter.location)
        if any(stride % array.itemsize for stride in array.strides):
            raise IRError(
                f"argument %{parameter.name} has strides of {tuple(array.strides)} bytes, no multiples of its "
                f"{array.itemsize}-byte elements (a field of a record array?); pass a copy", parameter.location,
            )  # fmt: skip
        if array.ndim != parameter.type.rank:
            raise IRError(
                f"argument %{parameter.name} has rank {array.ndim} and shape {tuple(array.shape)}, but the signature "
                f"says '{parameter.type}'", parameter.location,
            )  # fmt: skip
        return array

    def _array(self, argument: Any, name: str, parameter: Parameter | None = None) -> Any:
        torch = torch_or_none()
        if torch is not None and isinstance(argument, torch.Tensor):
            if argument.device.type != self.device:
                raise IRError(f"{name} is on '{argument.device}', but the function was compiled for {self.device}")
            return self.from_torch(argument.detach())
        if isinstance(argument, np.generic) and self.native is np.ndarray:
            return np.asarray(argument)  # what NumPy makes of a tensor of rank 0
        if not isinstance(argument, self.native):
            wanted = f"{self.native.__module__}.{self.native.__name__} or a PyTorch tensor on {self.device}"
            given = f"{type(argument).__module__}.{type(argument).__name__}"
            raise IRError(f"{name} is a {given}, but must be a {wanted}", parameter.location if parameter else unknown)
        return argument

    def accept_output(
        self, array: Any, type: TensorType, shape: tuple[int, ...], number: int, inputs: Sequence[Any]
    ) -> Any:
        """A buffer of `out=` that kernels may write; None where the result is computed beside it and copied into it,
        because it is strided or shares memory with an input."""
        made = self._array(array, f"out[{number}]")
        _check_dtype(made, type, f"out[{number}]", unknown)
        if tuple(made.shape) != shape:
            raise IRError(f"out[{number}] has shape {tuple(made.shape)}, but the result has {shape}")
        usable = made.flags.c_contiguous and self.pointer(made) % 64 == 0
        return made if usable and not any(self._overlap(made, i) for i in inputs) else None

    def _overlap(self, a: Any, b: Any) -> bool:
        """Whether the memory that two arrays span has bytes in common; a number has none."""
        if not hasattr(b, "strides"):
            return False
        (a_low, a_high), (b_low, b_high) = self._span(a), self._span(b)
        return a_low < b_high and b_low < a_high

    def _span(self, array: Any) -> tuple[int, int]:
        if not array.size:
            return 0, 0
        reach = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
        start = self.pointer(array)
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        return start + low, start + high + array.itemsize

    def give(self, result: Any, kind: str) -> Any:
        return self.to_torch(result) if kind == "torch" else result

    def copy_into(self, target: Any, result: Any) -> None:
        """Copy a result into the caller's array."""
        torch = torch_or_none()
        if torch is not None and isinstance(target, torch.Tensor):
            target.copy_(self.to_torch(result))
        else:
            target[...] = result

    def from_torch(self, tensor: Any) -> Any:
        raise NotImplementedError

    def to_torch(self, array: Any) -> Any:
        raise NotImplementedError

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        raise NotImplementedError

    def pointer(self, array: Any) -> int:
        raise NotImplementedError

    def contiguous(self, array: Any) -> Any:
        raise NotImplementedError

    def build(self, kernels: Sequence[loop.Kernel], arch: str | None, progress: Progress | None) -> Mapping[str, Any]:
        raise NotImplementedError


def _check_dtype(array: Any, type: TensorType, name: str, location: Location) -> None:
    wanted = dtype_of(type.element)
    if array.dtype != wanted:
        raise IRError(f"{name} has dtype {array.dtype}, but the signature says {type.element} ('{type}')", location)


def _scalar(argument: Any, parameter: Parameter) -> Any:
    """A Python number for a scalar parameter; a number that the type does not hold is an error."""
    type, item = parameter.type, getattr(argument, "item", None)
    value = item() if item is not None and getattr(argument, "ndim", 0) == 0 else argument
    if isinstance(type, FloatType) and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(type, (IntegerType, IndexType)) and isinstance(value, int):
        low, high = type.range() if isinstance(type, IntegerType) and type is not i1 else (0, 1) if type is i1 else (
            -(1 << 63), (1 << 63) - 1)  # fmt: skip
        if low <= value <= high:
            return int(value)
        raise IRError(f"argument %{parameter.name} is {value}, which '{type}' does not hold", parameter.location)
    raise IRError(
        f"argument %{parameter.name} is a {argument.__class__.__name__}, but must be a number of type '{type}'",
        parameter.location,
    )


class HostArrays(Arrays):
    """NumPy arrays, run by printed C."""

    native = np.ndarray

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """New memory, on 64 bytes."""
        made = np.empty(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize + 64, np.uint8)
        start = -made.__array_interface__["data"][0] % 64
        return made[start : made.size - 64 + start].view(dtype).reshape(shape)

    def pointer(self, array: np.ndarray) -> int:
        return int(array.__array_interface__["data"][0])

    def contiguous(self, array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array) if array.ndim else array

    def from_torch(self, tensor: Any) -> np.ndarray:
        name = str(tensor.dtype).removeprefix("torch.")
        if name in _TORCH_BITS:
            import ml_dtypes

            carrier, own = _TORCH_BITS[name]
            torch = torch_or_none()
            return tensor.view(getattr(torch, carrier)).numpy().view(getattr(ml_dtypes, own))  # type: ignore[no-any-return]
        return tensor.numpy()  # type: ignore[no-any-return]

    def to_torch(self, array: np.ndarray) -> Any:
        torch = torch_or_none()
        for name, (carrier, own) in _TORCH_BITS.items():
            if array.dtype.name == own:
                return torch.from_numpy(array.view(carrier)).view(getattr(torch, name))
        return torch.from_numpy(array)

    def build(self, kernels: Sequence[loop.Kernel], arch: str | None, progress: Progress | None) -> Mapping[str, Any]:
        from .cpu import build_kernels

        return build_kernels(kernels, progress)


class DeviceArrays(Arrays):
    """CuPy arrays, run by printed CUDA C."""

    device = "cuda"

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.native = cupy.ndarray

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.cupy.empty(shape, dtype)

    def pointer(self, array: Any) -> int:
        return int(array.data.ptr)

    def contiguous(self, array: Any) -> Any:
        return self.cupy.ascontiguousarray(array)

    def from_torch(self, tensor: Any) -> Any:
        """The same memory as a CuPy array, made directly: DLPack costs 20 us."""
        name = str(tensor.dtype).removeprefix("torch.")
        if name in _TORCH_BITS:
            import ml_dtypes

            dtype = np.dtype(getattr(ml_dtypes, _TORCH_BITS[name][1]))
        else:
            dtype = np.dtype(name.replace("bool", "bool_"))
        memory = self.cupy.cuda.UnownedMemory(tensor.data_ptr(), tensor.nbytes or 1, tensor, tensor.device.index)
        pointer = self.cupy.cuda.MemoryPointer(memory, 0)
        strides = tuple(s * dtype.itemsize for s in tensor.stride())
        return self.cupy.ndarray(tuple(tensor.shape), dtype, pointer, strides)

    def to_torch(self, array: Any) -> Any:
        torch = torch_or_none()
        for name, (carrier, own) in _TORCH_BITS.items():
            if array.dtype.name == own:
                return torch.from_dlpack(array.view(carrier)).view(getattr(torch, name))
        return torch.from_dlpack(array)

    def build(self, kernels: Sequence[loop.Kernel], arch: str | None, progress: Progress | None) -> Mapping[str, Any]:
        from .cuda import build_kernels

        return build_kernels(kernels, arch, progress)


_MADE: dict[str, Arrays] = {}


def arrays_of(target: str) -> Arrays:
    """The arrays of a target."""
    if target not in _MADE:
        _MADE[target] = DeviceArrays() if target == "cuda" else HostArrays()
    return _MADE[target]
