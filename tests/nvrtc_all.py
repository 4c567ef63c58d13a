"""Compile every CUDA source in a folder with NVRTC, for each architecture.

    STEPWELL_KERNEL_DUMP=kernels pytest && python tests/nvrtc_all.py kernels

The printer leaves what it prints in $STEPWELL_KERNEL_DUMP, which is also the folder where none is given.
"""

import os
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import nvrtc

ARCHITECTURES = ("sm_80", "sm_90a")


def attempt(job: tuple[Path, str]) -> tuple[Path, str, str]:
    """The log of one compilation; empty when it went well."""
    path, arch = job
    try:
        nvrtc.compile_cubin(path.read_text(encoding="utf-8"), arch, path.name, ["--fmad=false"])
    except nvrtc.NvrtcError as error:
        return path, arch, str(error)
    return path, arch, ""


def main(arguments: Sequence[str]) -> int:
    folder = arguments[0] if arguments else os.environ.get("STEPWELL_KERNEL_DUMP", "")
    sources = sorted(Path(folder).glob("*.cu")) if folder else []
    if not sources:
        print(f"no .cu files in '{folder}': run the tests with STEPWELL_KERNEL_DUMP set to a folder")
        return 1
    jobs = [(path, arch) for path in sources for arch in ARCHITECTURES]
    with ProcessPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(attempt, jobs, chunksize=8))
    failed = [(path, arch, log) for path, arch, log in results if log]
    counts = Counter(arch for _, arch, log in results if not log)
    for path, _arch, log in failed[:5]:
        print(f"{path}\n{log}\n")
    print("architecture  sources  compiled  failed")
    for arch in ARCHITECTURES:
        print(f"{arch:12}  {len(sources):7}  {counts[arch]:8}  {len(sources) - counts[arch]:6}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
