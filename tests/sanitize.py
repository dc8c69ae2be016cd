"""The kernels under AddressSanitizer and UBSan: ``python tests/sanitize.py``, with GCC on Linux.

Builds the package with meson's option ``-Dsanitize=true`` (meson.options) into a folder of its own, and runs
there

1. kernel_smoke.c, all of it sanitized, at every level of instructions,
2. the tests of the kernels, at every level,
3. the fuzzers (tests/fuzz), with as many examples as SPARSEKIT_FUZZ_EXAMPLES says, by default as in CI.

The first error ends the process that made it, with the stack; the exit status is then not 0. What the build
needs (meson-python, Cython, ninja) and the tests must be installed for this Python: doc/contributing.md,
"Build".

    python tests/sanitize.py --build DIR        keeps the build: the next one only compiles what changed
    python tests/sanitize.py -- tests/l1 -k x   other tests, by pytest's arguments
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
FLAGS = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-g"]
# Whatever ends up in a kernel of C or Cython. Left out are kernel_smoke (run above, without pytest's
# compilers) and tests that fork or start other Pythons. LD_PRELOAD slows their start to many seconds, and
# they check processes, not memory.
KERNEL_TESTS = [
    "tests/kernels/test_kernels.py",
    "tests/kernels/test_dense_kernels.py",
    "tests/kernels/test_compressed.py",
    "tests/bounded/test_row_losses.py",
    "tests/bounded/test_min_norm.py",
    "tests/fenchel_young/test_curvature.py",
    "tests/fenchel_young/test_sparsemax.py",
    "tests/extreme/test_extreme_kernels.py",
    "tests/extreme/test_class_blocks.py",
    "tests/extreme/test_ranking.py",
    "tests/extreme/test_shortlist.py",
    "tests/extreme/test_extreme_implicit.py",
    "tests/factor_graph/test_structures.py",
    "tests/l1/test_multinomial.py",
    "tests/l1/test_lbfgs.py",
]
LEVELS = ("x86-64-v4", "x86-64-v3", "baseline")
# a kernel follows an index far outside of a vector: what must end a process here, or nothing is watched
OUTSIDE = """
import numpy as np
from sparsekit._cython.shared._sparse import csr_matvec
indptr, indices = np.array([0, 1], dtype=np.int32), np.array([1005], dtype=np.int32)
csr_matvec(indptr, indices, np.ones(1), np.ones(1000), np.empty(1), 1)
"""
HOUR = 3600


def environment(site, level):
    """Variables for a process whose extension modules are sanitized."""
    preload = [_library("libasan.so"), _library("libstdc++.so.6")]
    return {
        **os.environ,
        # The interpreter itself is not sanitized, so its runtime has to be loaded before it. So has
        # libstdc++: the runtime intercepts its exceptions (SciPy's, PyTorch's) only where it finds them when
        # it starts.
        "LD_PRELOAD": " ".join(preload),
        "PYTHONPATH": str(site),
        # Memory of Python's own small objects and of NumPy's comes from malloc as well, with red zones around
        # it.
        "PYTHONMALLOC": "malloc",
        # Leaks: Python frees nothing of modules and of interned objects when it ends, and all that would be
        # listed.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "SPARSEKIT_SIMD": level,
        # of processes that pytest-xdist starts: each has both of the processors here otherwise
        "OMP_NUM_THREADS": "2",
    }


def _library(name):
    found = subprocess.run(
        [os.environ.get("CC", "gcc"), f"-print-file-name={name}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.strip()
    if not Path(found).is_absolute():
        raise SystemExit(f"GCC has no {name}: install it (Debian: libasan8, libubsan1)")
    return found


def build(folder):
    """Install the sanitized package into a folder of its own, and return that folder."""
    site = folder / "site"
    shutil.rmtree(site, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
        "--target",
        site,
        # extension modules find the sanitizers' symbols when they are loaded
        f"-Cbuild-dir={folder / 'build'}",
        "-Csetup-args=-Dsanitize=true",
        "-Csetup-args=-Db_lundef=false",
        CHECKOUT,
    ]
    # programs of this environment (cython, ninja) come first, as in an activated one
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    run("build", command, {**os.environ, "PATH": path})
    return site


def run(what, command, env):
    print(f"\n== {what}", flush=True)
    done = subprocess.run([str(part) for part in command], env=env, cwd=CHECKOUT, timeout=12 * HOUR)
    if done.returncode:
        raise SystemExit(f"{what}: ended with status {done.returncode}")


def control(site):
    """The sanitizers are at work."""
    print("\n== a read outside is seen", flush=True)
    command = [sys.executable, "-P", "-c", OUTSIDE]
    done = subprocess.run(
        command, env=environment(site, LEVELS[0]), capture_output=True, text=True, timeout=600
    )
    if done.returncode == 0 or "heap-buffer-overflow" not in done.stderr:
        raise SystemExit(f"a read outside passed (status {done.returncode}): {done.stderr[-2000:]}")


def smoke(folder):
    program, headers = folder / "kernel_smoke", CHECKOUT / "sparsekit"
    command = [os.environ.get("CC", "gcc"), "-std=gnu11", "-O2", "-fopenmp-simd", "-w", *FLAGS]
    command += ["-I", headers / "_cython", "-I", headers / "_scalar", "-o", program]
    run(
        "compile kernel_smoke.c",
        [*command, CHECKOUT / "tests/kernels/kernel_smoke.c", "-lm"],
        dict(os.environ),
    )
    for level in LEVELS:
        env = {**os.environ, "SPARSEKIT_SIMD": level, "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}
        run(f"kernel_smoke.c at {level}", [program], env)


def main(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, help="folder of the build; default: one that is removed")
    parser.add_argument("--levels", nargs="*", choices=LEVELS, default=LEVELS, help="of instructions")
    parser.add_argument("-n", "--numprocesses", default="auto", help="processes of pytest")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest instead of kernels and fuzzers")
    asked = parser.parse_args(arguments)
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise SystemExit("the sanitizers are set up for GCC on Linux, x86-64")
    with tempfile.TemporaryDirectory(prefix="sparsekit-sanitize.") as temporary:
        folder = (asked.build or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        site = build(folder)
        control(site)
        # ASan reports a segmentation fault itself; pytest's handler would come before it. -s: what pytest has
        # taken of the output is lost with the process that a report ends.
        pytest = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-s",
            "-p",
            "no:faulthandler",
            "-p",
            "no:cacheprovider",
        ]
        pytest += [f"--numprocesses={asked.numprocesses}", "-o", "timeout=3000"]
        if asked.pytest:
            run("tests", [*pytest, *asked.pytest], environment(site, asked.levels[0]))
            return
        smoke(folder)
        for level in asked.levels:
            run(f"kernels at {level}", [*pytest, *KERNEL_TESTS], environment(site, level))
        run("fuzzers", [*pytest, "tests/fuzz"], environment(site, asked.levels[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
