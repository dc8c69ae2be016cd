"""CUDA C on the CPU: ``RawModule`` with CuPy's signature, compiled by the system's C++ compiler.

The source is compiled behind ``cuda_shim.h``. The library is kept in a folder under a name made of the
contents, so that a source is compiled once a machine. ``cuda_launch`` checks and makes the launches.
"""

import contextlib
import ctypes
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from cuda_launch import Kernel, counts, seed

__all__ = ["RawModule", "counts", "seed", "unavailable"]

HERE = Path(__file__).resolve().parent
HEADERS = ("cuda_shim.h", "cuda_engine.h", "cuda_table.h")
ENGINE = ("cuda_fibers.cpp", "cuda_collectives.cpp")

# Alignment, bounds, shifts and conversions: what C++ leaves undefined and a device answers with a fault or
# with another number than this machine. The handlers are in cuda_collectives.cpp, no library is linked.
SANITIZE = "-fsanitize=alignment,bounds,shift-exponent,integer-divide-by-zero,float-cast-overflow"
# fmt: off
FLAGS = [
    "-std=c++17", "-O1", "-fno-fast-math", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden",
    "-fno-exceptions", "-fno-strict-aliasing", "-U_FORTIFY_SOURCE", "-fno-stack-protector",
    "-Wall", "-Wno-unknown-pragmas", "-Wno-unused", "-Wno-attributes", "-Wno-strict-overflow",
    "-Werror=return-type", "-Werror=uninitialized",
]
# fmt: on

COMPILE_LIMIT = 280  # seconds


@cache
def compiler():
    """Command of the C++ compiler, as a list; RuntimeError where there is none."""
    asked = os.environ.get("CXX")
    for command in [shlex.split(asked)] if asked else [["g++"], ["clang++"], ["c++"]]:
        found = shutil.which(command[0])
        if found:
            return [found, *command[1:]]
    raise RuntimeError(
        f"no C++ compiler to emulate CUDA C with: {asked or 'g++, clang++ and c++'} not found; "
        "install g++ or set CXX"
    )


def unavailable():
    """Why kernels cannot be emulated on this machine, or None."""
    machine = platform.machine().lower()
    if not sys.platform.startswith("linux") or machine not in ("x86_64", "amd64", "aarch64", "arm64"):
        return f"CUDA C is emulated on Linux on x86-64 and arm64 only, not on {sys.platform} on {machine}"
    try:
        compiler()
    except RuntimeError as error:
        return str(error)
    return None


@cache
def _folder():
    """Where compiled modules are kept; nobody else may write there."""
    named = os.environ.get("SPARSEKIT_EMULATION_CACHE")
    folder = Path(named or os.path.join(tempfile.gettempdir(), f"sparsekit-emulation-{os.getuid()}"))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not named and folder.stat().st_uid != os.getuid():
        folder = Path(tempfile.mkdtemp(prefix="sparsekit-emulation-"))
    return folder


@cache
def _fingerprint():
    """What a library depends on in addition to its source: the headers, the flags and the compiler."""
    binary = os.stat(compiler()[0])
    parts = [(HERE / name).read_text(encoding="utf-8") for name in HEADERS + ENGINE] + [
        Path(__file__).read_text(encoding="utf-8")
    ]
    return repr((parts, compiler(), binary.st_size, binary.st_mtime_ns, platform.machine()))


@contextlib.contextmanager
def _made_once(target):
    """Whether ``target`` is still to be made; processes that want the same one wait for the first."""
    if target.exists():
        yield False
        return
    import fcntl  # not on Windows, where nothing is compiled

    with open(target.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not target.exists()


def _run(command, source, what):
    done = subprocess.run(
        command, input=source, capture_output=True, text=True, encoding="utf-8", errors="replace",
        env={**os.environ, "LC_ALL": "C"}, timeout=COMPILE_LIMIT,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{what} failed ({' '.join(command[:1])}):\n{done.stderr.strip()}")
    return done


def split_options(options):
    """The ``-DNAME=value`` among the options of a module, as pairs; others than ``--std`` are refused."""
    if not isinstance(options, tuple):
        raise TypeError(f"options must be a tuple of str, got {type(options).__name__}")
    defines = []
    for option in options:
        found = re.match(r"-D(\w+)=(.*)$", option)
        if found:
            defines.append(found.groups())
        elif not option.startswith("--std="):
            raise RuntimeError(f"nvrtc: error: unrecognized option {option} found")
    return defines


KERNEL = re.compile(
    r"""(?P<extern>extern\s*"C"\s*)?(?P<static>\bstatic\s+)?__global__\s+"""
    r"""(?:__launch_bounds__\s*\((?P<before>[^;{]*?)\)\s*)?void\s+"""
    r"""(?:__launch_bounds__\s*\((?P<after>[^;{]*?)\)\s*)?"""
    r"""(?P<name>[A-Za-z_]\w*)\s*\((?P<parameters>[^;{]*?)\)\s*[{;]""",
    re.DOTALL,
)


def _split(text):
    """Parts between the commas of the outermost level."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "(<[") - (letter in ")>]")
        if letter == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]] if text.strip() else []


def kernels_of(code, defines):
    """``{kernel: (parameter names, launch bound as C or None)}`` of a source, macros expanded."""
    flags = [f"-D{name}={value}" for name, value in defines]
    command = [*compiler(), "-std=c++17", "-E", "-P", "-x", "c++", "-DSK_EMULATED", *flags, "-"]
    text = _run(command, code, "preprocessing of the CUDA source").stdout
    found, n_found = {}, 0
    for kernel in KERNEL.finditer(text):
        name = kernel["name"]
        n_found += 1
        if not kernel["extern"] or kernel["static"]:
            raise RuntimeError(f'kernel {name} must be declared extern "C" __global__ void, nothing between')
        bound = kernel["after"] or kernel["before"]
        names = []
        for parameter in _split(kernel["parameters"]):
            words = re.findall(r"[A-Za-z_]\w*", parameter.split("[")[0])
            names.append(words[-1] if words else "?")
        # a definition after its prototype may be the one that has the launch bounds
        found[name] = (names, _split(bound)[0].strip() if bound else found.get(name, (None, None))[1])
    n_kernels = len(re.findall(r"\b__global__\b", text))
    if n_found < n_kernels:
        raise RuntimeError(
            'a kernel must read extern "C" __global__ void [__launch_bounds__(...)] name(...) {...}; '
            f"that is so for {n_found} of {n_kernels}: {', '.join(found)}"
        )
    return found


def _translated(code, defines, kernels):
    """The C++ source: shim, macros, kernels, table."""
    lines = [f'#include "{HERE / "cuda_shim.h"}"']
    lines += [f"#define {name} {value}" for name, value in defines]
    lines += ['#line 1 "kernels.cu"', code, '#line 1 "table of the kernels"']
    for name, (parameters, bound) in kernels.items():
        lines.append(f'SK_EMULATED_KERNEL({name}, ({bound or 1024}), "{" ".join(parameters)}")')
    return "\n".join(lines) + "\n"


@cache
def _engine():
    """The engine's object files, compiled once for all modules."""
    key = hashlib.sha256(_fingerprint().encode()).hexdigest()[:32]
    objects = []
    for name in ENGINE:
        target = _folder() / f"{key}-{name}.o"
        with _made_once(target) as wanted:
            if wanted:
                with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as folder:
                    compiled = str(Path(folder) / "engine.o")
                    command = [*compiler(), *FLAGS, "-O2", "-c", str(HERE / name), "-o", compiled]
                    _run(command, None, "compilation of the emulation")
                    os.replace(compiled, target)
        objects.append(str(target))
    return objects


def _build(code, defines, target):
    kernels = kernels_of(code, defines)
    if not kernels:
        raise RuntimeError("the CUDA source has no kernel")
    with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as folder:
        source, compiled, library = (
            str(Path(folder) / name) for name in ("kernels.cpp", "kernels.o", "kernels.so")
        )
        Path(source).write_text(_translated(code, defines, kernels), encoding="utf-8")
        # two steps: with -fsanitize on the command line the linker would ask for the sanitizer's own library
        command = [*compiler(), *FLAGS, SANITIZE, "-c", source, "-o", compiled]
        _run(command, None, "compilation of the CUDA source")
        command = [*compiler(), "-shared", "-pthread", "-Wl,--no-undefined", compiled, *_engine(), "-lm"]
        _run([*command, "-o", library], None, "linking of the CUDA source")
        os.replace(library, target)


@cache
def _library(code, defines):
    key = hashlib.sha256(repr((_fingerprint(), code, defines)).encode()).hexdigest()[:32]
    target = _folder() / f"{key}.so"
    with _made_once(target) as wanted:
        if wanted:
            _build(code, defines, target)
    library = ctypes.CDLL(str(target))
    library.sk_emulated_error.restype = ctypes.c_char_p
    return library


class RawModule:
    """Module of CUDA kernels that the CPU runs; the parameters of ``cupy.RawModule`` that are used.

    As CuPy does, the module compiles when the first kernel is asked for. ``_after_launch`` is called with the
    name of a kernel that has run and its arguments.
    """

    _after_launch = None

    def __init__(self, *, code, options=()):
        self.code = code
        self._defines = tuple(split_options(options))
        self._kernels = {}

    def compile(self, log_stream=None):
        """Compile now."""
        _library(self.code, self._defines)

    def _finished(self, kernel, args):
        if self._after_launch is not None:
            self._after_launch(kernel, args)

    def get_function(self, name):
        """Kernel of this name, a callable."""
        if name not in self._kernels:
            library = _library(self.code, self._defines)
            if not hasattr(library, f"sk_emulated_launch_{name}"):
                raise RuntimeError(f"CUDA_ERROR_NOT_FOUND: the module has no kernel {name!r}")
            self._kernels[name] = Kernel(library, name, self.code, self._finished)
        return self._kernels[name]
