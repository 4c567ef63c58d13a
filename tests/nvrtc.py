"""Compile CUDA C to a cubin with NVRTC, on a machine with or without a GPU.

Only the wheel `nvidia-cuda-nvrtc` is needed (the `dev` extra): no toolkit, no driver. cupy has NVRTC
too, but CI need not install a package of that size to see that a kernel compiles.
"""

import ctypes
import functools
import importlib.metadata
from collections.abc import Sequence

# The name of the wheel for CUDA 13, and for CUDA 12.
WHEELS = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")


class NvrtcError(Exception):
    """NVRTC refused a source; the text is its log."""


@functools.cache
def library() -> ctypes.CDLL:
    for wheel in WHEELS:
        try:
            files = importlib.metadata.files(wheel) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.match("libnvrtc.so.*"):
                return ctypes.CDLL(str(file.locate()))
    raise FileNotFoundError(f"libnvrtc not found: install {' or '.join(WHEELS)}")


def call(function: str, *args: object) -> None:
    if status := getattr(library(), function)(*args):
        library().nvrtcGetErrorString.restype = ctypes.c_char_p
        raise NvrtcError(f"{function}: {library().nvrtcGetErrorString(status).decode()}")


def get(what: str, program: ctypes.c_void_p) -> bytes:
    """The bytes of `what` ("CUBIN" or "ProgramLog"): NVRTC tells a size, then fills a buffer."""
    size = ctypes.c_size_t()
    call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    call(f"nvrtcGet{what}", program, buffer)
    return buffer.raw


def compile_cubin(source: str, arch: str, name: str = "kernel.cu", options: Sequence[str] = ()) -> bytes:
    """The cubin of `source` for `arch` (such as "sm_90a"). `name` stands in the messages of the log.

    Raises NvrtcError with the log when the source does not compile.
    """
    program = ctypes.c_void_p()
    call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
    try:
        flags = [flag.encode() for flag in (f"--gpu-architecture={arch}", *options)]
        try:
            call("nvrtcCompileProgram", program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
        except NvrtcError as error:
            log = get("ProgramLog", program).rstrip(b"\0\n").decode(errors="replace")
            raise NvrtcError(f"{name} for {arch}: {error}\n{log}") from None
        return get("CUBIN", program)
    finally:
        call("nvrtcDestroyProgram", ctypes.byref(program))
