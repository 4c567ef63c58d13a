"""stepwell: tensor programs with symbolic sizes, lowered level by level to CUDA C and C.

Each name of the API is imported when it is first used, so that `import stepwell` stays cheap
(no NumPy, no Lark, no device library).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepwell.ir.parser import parse_module as parse
    from stepwell.runtime.api import compile

__version__ = "0.1.0"
__all__ = ["__version__", "compile", "parse"]

# Public name -> (module, attribute). The import above and __all__ list the same names.
_API = {
    "compile": ("stepwell.runtime.api", "compile"),
    "parse": ("stepwell.ir.parser", "parse_module"),
}


def __getattr__(name: str) -> object:
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _API[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})
