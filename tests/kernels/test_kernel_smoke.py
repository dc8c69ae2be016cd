"""The kernels' C code by other compilers and for other processors: kernel_smoke.c says what is checked."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("kernel_smoke.c")
FLAGS = ["-std=gnu11", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-w"]
ARM_COMPILER, ARM_EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
X86_EMULATOR = "qemu-x86_64"
# simd.h: a processor that has less than what is asked for runs at its own level
LEVELS = ["baseline", "x86-64-v3", "x86-64-v4"]
X86 = platform.machine().lower() in ("x86_64", "amd64")


def tool(name):
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture(scope="module")
def build(tmp_path_factory, checkout):
    """``build(compiler, *flags)``: the path of the program, compiled once."""
    built = {}

    def run(compiler, *flags):
        if (compiler, *flags) not in built:
            program = tmp_path_factory.mktemp("kernel_smoke") / "program"
            command = [tool(compiler), *FLAGS, *flags, "-I", checkout / "sparsekit" / "_cython"]
            command += ["-I", checkout / "sparsekit" / "_scalar"]
            done = subprocess.run(
                [*map(str, command), "-o", str(program), str(SOURCE), "-lm"],
                capture_output=True,
                text=True,
                timeout=240,
            )
            assert done.returncode == 0, done.stderr[-4000:]
            built[compiler, *flags] = program
        return built[compiler, *flags]

    return run


def checks(program, *before, level=None):
    """The level of `LEVELS` that the program ran at, after its checks have passed."""
    env = {key: value for key, value in os.environ.items() if key != "SPARSEKIT_SIMD"}
    if level is not None:
        env["SPARSEKIT_SIMD"] = level
    done = subprocess.run(
        [*before, str(program)], capture_output=True, text=True, timeout=120, env=env, errors="replace"
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    number = int(re.search(r"(\d+) checks, 0 failures", done.stdout)[1])
    assert number > 5000
    return int(re.search(r"level (\d+), ", done.stdout)[1])


@pytest.fixture(autouse=True)
def _unix():
    if sys.platform == "win32":
        pytest.skip("the commands are written for compilers with the options of GCC")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("level", [None, *LEVELS])
@pytest.mark.thorough(keep=2)
def test_natively(build, compiler, level):
    found = checks(build(compiler), level=level)
    if level is None:
        return
    asked = LEVELS.index(level)
    assert found <= asked
    if found < asked:
        pytest.skip(f"this processor has no {level}: the checks passed at {LEVELS[found]}")


def test_on_arm64(build):
    emulator = tool(ARM_EMULATOR)
    assert checks(build(ARM_COMPILER, "-static"), emulator) == 0


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(
    ("processor", "level"), [("Nehalem", "baseline"), ("Haswell", "x86-64-v3")], ids=["Nehalem", "Haswell"]
)
def test_on_older_x86(build, compiler, processor, level):
    if not X86:
        pytest.skip(f"a program for {platform.machine()} does not run on an emulated x86-64")
    emulator = tool(X86_EMULATOR)
    assert checks(build(compiler), emulator, "-cpu", processor) == LEVELS.index(level)
