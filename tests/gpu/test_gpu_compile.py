"""Every CUDA C source compiles for old and new chips, where a compiler is at hand; no GPU is needed."""

import re

import gpu_compilers
import numpy as np
import pytest
from gpu_sources import DOUBLE, FILES, KERNEL, SINGLE, has_types

from sparsekit.gpu.shared import _compile

NVCC = gpu_compilers.nvcc()
# their tests are skipped without a toolkit or `pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-nvrtc`
NVRTCS = gpu_compilers.NVRTC.find()
SPILL = re.compile(r"Function properties for (\w+)\n.*?(\d+) bytes spill stores")


def sources(types, files):
    """One text of files: names that clash would clash for a user's own combination, too."""
    real, index = types
    header = f"#define REAL {real}\n#define INDEX {index}\n"
    return header + "\n".join(_compile.source(file) for file in files)


def test_kernel_names_are_unique_and_begin_alike():
    names = [name for file in FILES for name in KERNEL.findall(_compile.source(file))]
    assert names
    assert len(names) == len(set(names))
    assert [name for name in names if not name.startswith("sk_")] == []


def spilled(said):
    """Kernels of which registers spill to memory, as ptxas says in verbose mode."""
    return {name: int(stores) for name, stores in SPILL.findall(said) if int(stores)}


def nvcc_chips():
    """Chips to compile for with nvcc: NVRTC, where it is there, compiles for the oldest."""
    if NVCC is None:
        return [None]
    chips = gpu_compilers.nvcc_targets(NVCC)
    return chips[1:] if NVRTCS else chips


@pytest.mark.parametrize("chip", nvcc_chips())
@pytest.mark.thorough
def test_nvcc_compiles_every_source(chip, tmp_path):
    if NVCC is None:
        pytest.skip("nvcc is not installed")
    assert spilled(gpu_compilers.run_nvcc(NVCC, sources(SINGLE, FILES), chip, tmp_path)) == {}, (
        f"on sm_{chip}"
    )


@pytest.mark.thorough
def test_nvcc_compiles_double_precision(tmp_path):
    if NVCC is None:
        pytest.skip("nvcc is not installed")
    files = [file for file in FILES if has_types(file)]
    assert 0 < len(files) < len(FILES)
    assert (
        spilled(gpu_compilers.run_nvcc(NVCC, sources(DOUBLE, files), gpu_compilers.WANTED[-1], tmp_path))
        == {}
    )


# what CuPy calls, and on the oldest chip that each version knows
@pytest.mark.parametrize("nvrtc", NVRTCS)
@pytest.mark.parametrize("file", FILES)
def test_nvrtc_compiles_every_source(nvrtc, file):
    for types in (SINGLE, DOUBLE) if has_types(file) else (SINGLE,):
        options = ["--ptxas-options=-v", f"-DREAL={types[0]}", f"-DINDEX={types[1]}"]
        code, said = nvrtc.compile(_compile.source(file), nvrtc.targets()[0], options)
        assert code[:4] == b"\x7fELF"
        assert SPILL.search(said) and spilled(said) == {}


def elementwise_sources(cupy, monkeypatch):
    """{name: text} of CuPy's elementwise and reduction kernels as the stand-in writes them."""
    from cupy import _kernels

    from sparsekit.gpu.bounded import _row_losses
    from sparsekit.gpu.factor_graph import _factor_graph
    from sparsekit.gpu.l1 import _glm
    from sparsekit.gpu.shared import _curvature, _dense

    found = {}

    class Recorder(_kernels.RawModule):
        def get_function(self, name):
            found[name] = self.code
            return super().get_function(name)

    monkeypatch.setattr(_kernels, "RawModule", Recorder)
    one, single = cupy.ones(1), cupy.ones(1, dtype=np.float32)
    for loss in (_glm.logistic_value, _glm.squared_value):
        loss(one, one, one)
    _row_losses.piecewise_along(one, one, 0.0, one, one, one, one, -1.0, 1.0, 0.0, 0.0)
    _row_losses.log_loss_along(one, one, 0.0, one, one, one)
    _curvature.curve_scores(single[:, None], single[:, None], cupy.zeros(1, np.int32), single, None)
    _curvature.cg_step(1.0, *[single] * 5)
    _curvature.cg_turn(1.0, *[single] * 3)
    _dense.rmatvec(one[:, None], one, one, square=True)
    _factor_graph.pair_entries(one, one, one, one, one)
    return found


@pytest.mark.parametrize("nvrtc", NVRTCS)
def test_nvrtc_compiles_elementwise_kernels(nvrtc, cupy, monkeypatch):
    if not hasattr(cupy, "emulation"):
        pytest.skip("a GPU is there: CuPy itself compiles them")
    found = elementwise_sources(cupy, monkeypatch)
    assert len(found) == 10
    for name, code in found.items():
        assert nvrtc.compile(code, nvrtc.targets()[0])[0][:4] == b"\x7fELF", name
