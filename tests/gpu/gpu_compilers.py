"""CUDA compilers that need no GPU: nvcc of a toolkit, and NVRTC, the library that CuPy compiles with."""

import ctypes
import importlib.util
import os
import re
import shutil
from pathlib import Path

from children import run_limited

# the chips that must be supported; a compiler that no longer knows one compiles for its own oldest instead
WANTED = (70, 80, 90)


def nvcc():
    """Path of nvcc, or None."""
    return shutil.which("nvcc")


def nvcc_targets(path):
    """Chips to compile for with this nvcc: each of WANTED, or the oldest that it still knows."""
    done = run_limited([path, "--list-gpu-arch"], timeout=60)
    assert done.returncode == 0, done.stderr
    known = sorted({int(number) for number in re.findall(r"compute_(\d+)", done.stdout)})
    return sorted({chip if chip in known else min(n for n in known if n > chip) for chip in WANTED})


def run_nvcc(path, code, chip, folder):
    """What nvcc and ptxas say of the text ``code``; an error is an AssertionError with their words."""
    source = Path(folder) / "kernels.cu"
    source.write_text(code, encoding="utf-8")
    command = [
        path,
        "-std=c++17",
        f"-arch=sm_{chip}",
        "-cubin",
        "-Xptxas",
        "-v",
        "-Werror",
        "cross-execution-space-call",
    ]
    done = run_limited([*command, "-o", source.with_suffix(".cubin"), source], timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stderr


class NVRTC:
    """The run-time compiler, through its C interface."""

    def __init__(self, path):
        for builtins in sorted(Path(path).parent.glob("libnvrtc-builtins.so*")):
            ctypes.CDLL(str(builtins))  # the library asks for it by its bare name
        self.library = ctypes.CDLL(str(path))

    @classmethod
    def find(cls):
        """The libraries of a toolkit and of the wheels nvidia-cuda-nvrtc-cu12 and nvidia-cuda-nvrtc."""
        folders = [Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "lib64"]
        found = importlib.util.find_spec("nvidia")
        for location in found.submodule_search_locations if found else ():
            folders += sorted(Path(location).glob("cu*/lib"))
        return [cls(path) for folder in folders for path in sorted(folder.glob("libnvrtc.so.*"))[:1]]

    def targets(self):
        """Chips to compile for: each of WANTED, or the oldest that this version still knows."""
        count = ctypes.c_int()
        self._check(self.library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
        known = (ctypes.c_int * count.value)()
        self._check(self.library.nvrtcGetSupportedArchs(known))
        return sorted({chip if chip in known else min(n for n in known if n > chip) for chip in WANTED})

    def compile(self, code, chip, options=()):
        """Machine code of the text ``code``, and the compiler's words; an error is an AssertionError."""
        program = ctypes.c_void_p()
        self._check(
            self.library.nvrtcCreateProgram(
                ctypes.byref(program), code.encode(), b"kernels.cu", 0, None, None
            )
        )
        try:
            words = [b"--std=c++17", f"--gpu-architecture=sm_{chip}".encode(), *(o.encode() for o in options)]
            words += [b"-ftz=true", b"--device-as-default-execution-space"]  # as CuPy adds
            status = self.library.nvrtcCompileProgram(
                program, len(words), (ctypes.c_char_p * len(words))(*words)
            )
            log = self._text(program, "ProgramLog").decode()
            assert status == 0, log
            return self._text(program, "CUBIN"), log
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, program, what):
        size = ctypes.c_size_t()
        self._check(getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        build_log = ctypes.create_string_buffer(size.value)
        self._check(getattr(self.library, f"nvrtcGet{what}")(program, build_log))
        return build_log.raw

    def _check(self, status):
        assert status == 0, f"NVRTC answered {status}"
