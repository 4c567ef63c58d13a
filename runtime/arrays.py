"""Arrays of the two devices: NumPy and CuPy inside, PyTorch at the door, nothing copied on the way in."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..dialects import loop
from ..dialects.scalar import dtype_of
from ..dialects.signature import Parameter
from ..ir.attributes import FloatType, IndexType, IntegerType, Location, TensorType, i1, unknown
from ..ir.core import Operation
from ..ir.diagnostics import IRError
from ..ir.floats import decode_float, encode_float, largest_float

Progress = Callable[[str, int, int], None]
# PyTorch's dtypes that NumPy does not know travel as integers of the same width.
_TORCH_BITS = {"bfloat16": ("int16", "bfloat16"), "float8_e4m3fn": ("uint8", "float8_e4m3fn"),
               "float8_e5m2": ("uint8", "float8_e5m2")}  # fmt: skip


LARGE = 1 << 28  # bytes from which on it is looked up whether there is so much memory


def available_memory() -> int | None:
    """The bytes that this process can still take without swapping; None where the system does not say."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) << 10)
        limit, used = (Path("/sys/fs/cgroup", f"memory.{n}").read_text().strip() for n in ("max", "current"))
        if limit != "max":
            found.append(max(int(limit) - int(used), 0))
    except (OSError, ValueError, IndexError):
        pass  # another system, or no cgroups
    return min(found, default=None)


def no_memory(size: int, what: str, where: str = "this machine") -> IRError:
    """The error of `what`, of `size` bytes, for which there is no room."""
    there = available_memory() if where == "this machine" else None
    has = f", but {where} has {amount(there)} available" if there is not None else f", more than {where} has available"
    return IRError(f"{what} would take {amount(size)}{has}")


def check_memory(size: int, what: str) -> None:
    """Raise an IRError where `what`, of `size` bytes, is more than there is memory."""
    there = available_memory()
    if there is not None and size > there:
        raise no_memory(size, what)


def amount(size: int) -> str:
    """`2.5 GiB (2684354560 bytes)`"""
    scale = min(max(size.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    return f"{size / (1 << 10 * scale):.4g} {_UNITS[scale]} ({size} bytes)" if scale else f"{size} bytes"


_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


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
            return accept_scalar(argument, parameter)
        array = self._array(argument, f"argument %{parameter.name}", parameter)
        _check_dtype(array, parameter.type, f"argument %{parameter.name}", parameter.location)
        self._check_places(array, f"argument %{parameter.name}", parameter.location)
        if array.ndim != parameter.type.rank:
            raise IRError(
                f"argument %{parameter.name} has rank {array.ndim} and shape {tuple(array.shape)}, but the signature "
                f"says '{parameter.type}'", parameter.location,
            )  # fmt: skip
        return array

    def _check_places(self, array: Any, name: str, location: Location) -> None:
        """Elements stand where a kernel can read them."""
        if any(stride % array.itemsize for stride in array.strides):
            raise IRError(
                f"{name} has strides of {tuple(array.strides)} bytes, no multiples of its {array.itemsize}-byte "
                "elements (a field of a record array?); pass a copy", location,
            )  # fmt: skip
        aligned = getattr(array.flags, "aligned", None)
        if aligned is False or (aligned is None and self.pointer(array) % array.dtype.alignment):
            raise IRError(f"{name} begins in the middle of a {array.dtype} in memory (a view of bytes?); pass a copy",
                          location)  # fmt: skip

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
        if type(argument) is self.native:
            return argument
        if isinstance(argument, np.ma.MaskedArray):
            raise IRError(f"{name} is a masked array, whose mask would be ignored; pass x.filled(...) or x.data",
                          parameter.location if parameter else unknown)  # fmt: skip
        if isinstance(argument, np.ndarray):
            return argument.view(np.ndarray)  # np.matrix and others reshape and index in ways of their own
        return argument

    def accept_output(
        self, array: Any, type: TensorType, shape: tuple[int, ...], number: int, inputs: Sequence[Any]
    ) -> Any:
        """A buffer of `out=` that kernels may write; None where the result is computed beside it and copied into it,
        because it is strided or shares memory with an input."""
        name = f"out[{number}]"
        made = self._array(array, name)
        _check_dtype(made, type, name, unknown)
        if tuple(made.shape) != shape:
            raise IRError(f"{name} has shape {tuple(made.shape)}, but the result has {shape}")
        if not getattr(made.flags, "writeable", True):
            raise IRError(f"{name} is a read-only array, which cannot take a result; pass one that can be written")
        if self._repeats(made):
            raise IRError(f"{name} has elements that share memory (shape {tuple(made.shape)}, strides of "
                          f"{tuple(made.strides)} bytes), so that it cannot hold the result; pass a copy")  # fmt: skip
        usable = made.flags.c_contiguous and self.pointer(made) % 64 == 0
        return made if usable and not any(self.may_overlap(made, i) for i in inputs) else None

    def buffer_of(self, array: Any) -> Any:
        """An array of `out=` that was accepted, as one of the device."""
        return self._array(array, "out")

    def check_apart(self, outputs: Mapping[int, Any]) -> None:
        """Raise an IRError where two arrays of `out=`, by result number, have memory in common."""
        made = [(number, self.buffer_of(array)) for number, array in outputs.items()] if len(outputs) > 1 else []
        for at, (number, array) in enumerate(made):
            for other, earlier in made[:at]:
                if self.may_overlap(earlier, array) and self._share(earlier, array):
                    raise IRError(f"out[{other}] and out[{number}] share memory, but each result needs its own")

    def may_overlap(self, a: Any, b: Any) -> bool:
        """Whether the memory that two arrays span has bytes in common; a number has none."""
        if not hasattr(b, "strides"):
            return False
        (a_low, a_high), (b_low, b_high) = self._span(a), self._span(b)
        return a_low < b_high and b_low < a_high

    def _span(self, array: Any) -> tuple[int, int]:
        if not array.size:
            return 0, 0
        reach = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
        start = int(self.pointer(array))
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        return start + low, start + high + array.itemsize

    def _share(self, a: Any, b: Any) -> bool:
        """Whether an element of `a` has a byte in common with one of `b`: spans may interleave."""
        try:
            first, second = (np.asarray(_Memory(x, self.pointer(x))) for x in (a, b))
            return np.shares_memory(first, second, max_work=1 << 20)  # type: ignore[arg-type]
        except np.exceptions.TooHardError:
            return True

    def _repeats(self, array: Any) -> bool:
        """Whether two elements have a byte in common."""
        if not array.size or array.flags.c_contiguous:
            return False
        axes = sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape) if size > 1)
        reach = array.itemsize
        for stride, size in axes:
            if stride < reach:  # it steps into what the axes inside it span: look at every element's place
                return not stride or _repeats(axes, array.itemsize)
            reach += stride * (size - 1)
        return False

    def give(self, result: Any, kind: str) -> Any:
        return self.to_torch(result) if kind == "torch" and hasattr(result, "strides") else result

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

    def finish(self, results: Sequence[Any], op: Operation) -> None:
        """Called with the results of a call, and the operation that returns them."""

    def build(self, kernels: Sequence[loop.Kernel], arch: str | None, progress: Progress | None) -> Mapping[str, Any]:
        raise NotImplementedError


class _Memory:
    """Where an array lies, as NumPy reads it; what is there is not touched."""

    def __init__(self, array: Any, pointer: int) -> None:
        self.__array_interface__ = {
            "version": 3, "data": (int(pointer), False), "typestr": f"|V{array.itemsize}",
            "shape": tuple(array.shape), "strides": tuple(array.strides),
        }  # fmt: skip


def _repeats(axes: Sequence[tuple[int, int]], itemsize: int) -> bool:
    """Whether two elements of an array with these (stride, size) have a byte in common."""
    places = np.zeros(1, np.int64)
    for stride, size in axes:
        places = np.add.outer(places, np.arange(size, dtype=np.int64) * stride).reshape(-1)
    places.sort()
    return bool((np.diff(places) < itemsize).any())


def _check_dtype(array: Any, type: TensorType, name: str, location: Location) -> None:
    wanted = dtype_of(type.element)
    if array.dtype == wanted:
        return
    if array.dtype.newbyteorder("=") == wanted:
        raise IRError(f"{name} has dtype {array.dtype.str}, whose bytes are in the other order than those of this "
                      f"machine's {wanted}; pass x.astype('{wanted}')", location)  # fmt: skip
    raise IRError(f"{name} has dtype {array.dtype}, but the signature says {type.element} ('{type}')", location)


_largest = functools.cache(largest_float)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an int beyond f64
        return math.inf


def _not_held(value: float, parameter: Parameter) -> IRError:
    long = isinstance(value, int) and value.bit_length() > 256
    shown = f"an integer of {int(value).bit_length()} bits" if long else str(value)
    return IRError(f"argument %{parameter.name} is {shown}, which '{parameter.type}' does not hold", parameter.location)


def accept_scalar(argument: Any, parameter: Parameter) -> Any:
    """A Python number for a scalar parameter; a number that the type does not hold is an error."""
    type, item = parameter.type, getattr(argument, "item", None)
    value = item() if item is not None and getattr(argument, "ndim", 0) == 0 else argument
    truth = isinstance(value, bool)  # a number only where the type is i1
    if isinstance(type, FloatType) and isinstance(value, (int, float)) and not truth:
        made = _as_float(value)
        if math.isfinite(made) and abs(made) > _largest(type.name):
            made = decode_float(encode_float(made, type.name), type.name)  # what rounds to the largest is held
        if math.isfinite(made) or value in (math.inf, -math.inf) or value != value:
            return float(value)
        raise _not_held(value, parameter)
    if isinstance(type, (IntegerType, IndexType)) and isinstance(value, int) and (type is i1 or not truth):
        low, high = type.range() if isinstance(type, IntegerType) and type is not i1 else (0, 1) if type is i1 else (
            -(1 << 63), (1 << 63) - 1)  # fmt: skip
        if low <= value <= high:
            return int(value)
        raise _not_held(value, parameter)
    raise IRError(
        f"argument %{parameter.name} is a {argument.__class__.__name__}, but must be a number of type '{type}'",
        parameter.location,
    )


class HostArrays(Arrays):
    """NumPy arrays, run by printed C."""

    native = np.ndarray

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """New memory, on 64 bytes."""
        size = math.prod(shape) * dtype.itemsize
        if size >= LARGE:
            check_memory(size, f"an array of shape {shape} and dtype {dtype}")
        try:
            made = np.empty(size + 64, np.uint8)
        except (MemoryError, ValueError):  # the latter beyond what an index can be
            raise no_memory(size, f"an array of shape {shape} and dtype {dtype}") from None
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
        try:
            return self.cupy.empty(shape, dtype)
        except (MemoryError, ValueError):
            size = math.prod(shape) * dtype.itemsize
            raise no_memory(size, f"an array of shape {shape} and dtype {dtype}", "the device") from None

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


def _make(target: str) -> Arrays:
    if target == "cuda":
        return DeviceArrays()
    if not target.startswith("emulate"):
        return HostArrays()
    from .emulate import EmulatedArrays

    return EmulatedArrays(checked=target == "emulate")


_MADE: dict[str, Arrays] = {}


def arrays_of(target: str) -> Arrays:
    """The arrays of a target."""
    if target not in _MADE:
        _MADE[target] = _make(target)
    return _MADE[target]
