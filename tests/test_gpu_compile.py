"""Every CUDA C source compiles for old and new chips, where a compiler is at hand; no GPU is needed."""

import re
from pathlib import Path

import gpu_compilers
import pytest

import sparsekit
from sparsekit.gpu import _compile

FOLDER = Path(sparsekit.__file__).parent / "gpu"
FILES = sorted(path.stem for path in FOLDER.glob("*.cu"))
TYPES = [("float", "int"), ("double", "long long")]
NVCC = gpu_compilers.nvcc()
NVRTC = gpu_compilers.NVRTC.find()
# those that a macro makes are indented in it; where their names clash, nvcc says so
KERNEL = re.compile(r'(?m)^extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\s*\(')


def all_sources(real, index):
    """One text of all files: names that clash would clash for a user's own combination, too."""
    header = f"#define REAL {real}\n#define INDEX {index}\n"
    return header + "\n".join(_compile.source(file) for file in FILES)


def test_kernel_names_are_unique_and_begin_alike():
    names = [name for file in FILES for name in KERNEL.findall(_compile.source(file))]
    assert names
    assert len(names) == len(set(names))
    assert [name for name in names if not name.startswith("sk_")] == []


@pytest.mark.parametrize("real, index", TYPES)
@pytest.mark.parametrize("chip", gpu_compilers.nvcc_targets(NVCC) if NVCC else [None])
def test_nvcc_compiles_every_source(real, index, chip, tmp_path):
    if NVCC is None:
        pytest.skip("nvcc is not installed")
    said = gpu_compilers.run_nvcc(NVCC, all_sources(real, index), chip, tmp_path)
    spilled = {}
    for name, stores in re.findall(r"Function properties for (\w+)\n.*?(\d+) bytes spill stores", said):
        if int(stores):
            spilled[name] = int(stores)
    assert spilled == {}, f"registers of these kernels spill to memory on sm_{chip}"


@pytest.mark.parametrize("real, index", TYPES)
@pytest.mark.parametrize("chip", NVRTC.targets() if NVRTC else [None])
@pytest.mark.parametrize("file", FILES)
def test_nvrtc_compiles_every_source(file, real, index, chip):
    if NVRTC is None:
        pytest.skip("NVRTC is not installed (pip install nvidia-cuda-nvrtc-cu12)")
    code = NVRTC.compile(_compile.source(file), chip, [f"-DREAL={real}", f"-DINDEX={index}"])
    assert code[:4] == b"\x7fELF"


@pytest.mark.skipif(NVRTC is None, reason="NVRTC is not installed (pip install nvidia-cuda-nvrtc-cu12)")
def test_nvrtc_refuses_what_is_wrong():
    with pytest.raises(AssertionError, match="undefined"):
        NVRTC.compile('extern "C" __global__ void sk_wrong() { unknown(); }', NVRTC.targets()[-1])
