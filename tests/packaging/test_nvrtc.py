"""NVRTC through ctypes: no GPU and no header needed."""

import nvrtc
import pytest

KERNEL = 'extern "C" __global__ void scale(float *x, float a) { x[threadIdx.x] *= a; }'


@pytest.fixture(autouse=True)
def library() -> None:
    try:
        nvrtc.library()
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_cubin(arch: str) -> None:
    cubin = nvrtc.compile_cubin(KERNEL, arch)
    assert cubin.startswith(b"\x7fELF") and b"scale" in cubin


def test_error_shows_the_log() -> None:
    with pytest.raises(nvrtc.NvrtcError, match=r'(?s)scale\.cu\(1\).*identifier "b" is undefined'):
        nvrtc.compile_cubin(KERNEL.replace("*= a", "*= b"), "sm_80", name="scale.cu")
