"""Names of the IR as C identifiers: no keyword, no builtin, no macro, no two alike; and comments that end."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Keywords of C11 and C++20, and what CUDA adds.
_KEYWORDS = """
alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case catch
char char8_t char16_t char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export extern false final float
for friend goto if import inline int long module mutable namespace new noexcept not not_eq nullptr operator or or_eq
override private protected public reflexpr register reinterpret_cast requires restrict return short signed sizeof
static static_assert static_cast struct switch synchronized template this thread_local throw true try typedef typeid
typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq half
"""

# Macros and predeclared names of compilers and of headers that a prelude may include.
_PREDEFINED = """
linux unix i386 arm NULL EOF NAN INFINITY HUGE_VAL assert errno min max main abort exit malloc free memcpy memmove
memset memcmp strlen printf stdin stdout stderr clock clock_t time size_t ssize_t ptrdiff_t quad_t u_quad_t uint ulong
ushort intptr_t uintptr_t va_list std cuda nvcuda signbit isnan isinf isfinite isnormal fpclassify saturate norm
rnorm rcbrt normcdf normcdfinv cyl_bessel_i0 cyl_bessel_i1 threadIdx blockIdx blockDim gridDim warpSize dim3
tex1D tex2D tex3D surf1Dread surf2Dread abs labs llabs div ldiv lldiv index rindex
alloca strdupa strndupa issubnormal math_errhandling MAXFLOAT NFDBITS SNAN SNANF SNANL WEXITED WEXITSTATUS WIFEXITED
WIFSIGNALED WIFSTOPPED WIFCONTINUED WCONTINUED WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED
"""

# What stdlib.h and string.h declare: names that a kernel of its own may not have in C++.
_LIBRARY = """
a64l aligned_alloc atexit atof atoi atol atoll bcmp bcopy bsearch bzero calloc canonicalize clearenv div_t drand48 drem
ecvt erand48 fcvt ffs finite fmaximum fminimum fromfp gcvt getenv getpt getsubopt gid_t grantpt id_t initstate
int8_t int16_t int32_t int64_t intmax_t jrand48 key_t l64a lcong48 llogb lrand48 mblen mbstowcs mbtowc memccpy memchr
memfrob memmem mempcpy memrchr mkdtemp mkstemp mktemp mode_t mrand48 nextdown nexttoward nextup nrand48 off_t on_exit
pid_t pselect ptsname putenv qsort quick_exit rand random realloc realpath rpmatch seed48 select setenv setstate
signgam significand srand srandom stpcpy strcat strchr strcmp strcoll strcpy strcspn strdup strerror strfry strncat
strncmp strncpy strndup strnlen strpbrk strrchr strsep strsignal strspn strstr strtod strtof strtok strtol strtold
strtoll strtoul strtoull strxfrm system time_t timer_t totalorder u_char u_int u_long u_short ufromfp uid_t uint8_t
uint16_t uint32_t uint64_t uintmax_t unlockpt unsetenv valloc wcstombs wctomb
"""

# Functions of libm: a kernel that defined one would be called by the compiler in its place.
_LIBM = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc erfcinv erfcx erfinv exp exp10 exp2
expm1 fabs fdim floor fma fmax fmin fmod frexp gamma hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p
log2 logb lrint lround modf nan nearbyint nextafter norm3d norm4d pow remainder remquo rhypot rint round roundeven
rsqrt scalb scalbln scalbn sin sincos sincospi sinh sinpi sqrt tan tanh tgamma trunc y0 y1 yn
"""

_VECTORS = [f"{t}{n}" for t in ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "longlong",
                                "ulonglong", "float", "double") for n in (1, 2, 3, 4)]  # fmt: skip
_FUNCTIONS = [name + tail for name in _LIBM.split() for tail in ("", "f", "l")]
RESERVED = frozenset([*_KEYWORDS.split(), *_PREDEFINED.split(), *_LIBRARY.split(), *_VECTORS, *_FUNCTIONS])
# Macros of headers: INT_MAX, FP_NAN, M_PI, M_PIf32; and libm's functions of the types _Float32 and so on.
_SHAPED = re.compile(
    rf"[A-Z][A-Z0-9]*_[A-Z0-9_]+[fl]?|M_\w+|HUGE_VAL\w*|(?:{'|'.join(_LIBM.split())})f(?:32|64|128)x?"
)


def identifier(name: str, fallback: str = "v") -> str:
    """A C identifier that resembles `name`: ASCII, not reserved for the language, the library or a prelude."""
    text = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_]", "_", name)).lstrip("_")[:64]
    if not text or text[0].isdigit():
        text = fallback + text
    if text.lower().startswith(("sw_", "cuda", "nv")):
        text = "k_" + text
    return text + "_" if text in RESERVED or _SHAPED.fullmatch(text) else text


class Names:
    """Identifiers in nested scopes; a name is free again when its scope is closed."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._scopes: list[set[str]] = [set(taken)]

    def push(self) -> None:
        """Open a scope."""
        self._scopes.append(set())

    def pop(self) -> None:
        """Close the innermost scope."""
        self._scopes.pop()

    def fresh(self, name: str | None, fallback: str = "v") -> str:
        """An identifier like `name` that no open scope has, now taken in the innermost one."""
        base = identifier(name or fallback, fallback)
        found, count = base, 0
        while any(found in scope for scope in self._scopes):
            count += 1
            found = f"{base}_{count}"
        self._scopes[-1].add(found)
        return found


def comment(text: str) -> str:
    """`text` fit to follow `//`: one line of printable ASCII that cannot continue or end a comment."""
    plain = "".join(c if " " <= c <= "~" else " " for c in text).replace("\\", "/")
    return " ".join(plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").split())[:200]
