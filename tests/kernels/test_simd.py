"""The level of instructions: what the processor has, what SPARSEKIT_SIMD asks for, and equal results."""

import platform

import pytest
from numpy._core._multiarray_umath import __cpu_features__

from sparsekit._cython.shared._runtime import LEVELS, simd_level, simd_levels

NEEDED = {
    "x86-64-v3": {"AVX2", "FMA3", "F16C"},
    "x86-64-v4": {"AVX512F", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512VL"},
}
LEVEL = "from sparsekit._cython.shared._runtime import simd_level; print(simd_level())"


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="levels are those of x86-64")
def test_levels_are_those_that_numpy_finds():
    has = {name for name, there in __cpu_features__.items() if there}
    expected = ["baseline"]
    for level, needed in NEEDED.items():
        if not needed <= has:
            break
        expected.append(level)
    assert list(simd_levels()) == expected


@pytest.mark.parametrize("asked", ["", *LEVELS])
def test_the_variable_is_the_highest_level_used(run_python, asked):
    highest = LEVELS.index(asked or LEVELS[-1])
    assert run_python(LEVEL, env={"SPARSEKIT_SIMD": asked}).strip() == simd_levels()[: highest + 1][-1]


def test_an_unknown_level_is_refused(run_python):
    code = "try:\n    import sparsekit._cython\nexcept ImportError as error:\n    print(error)"
    said = run_python(code, env={"SPARSEKIT_SIMD": "avx2"})
    assert "SPARSEKIT_SIMD is avx2; it must be one of baseline, x86-64-v3, x86-64-v4" in said


def test_results_at_all_levels_agree(run_python):
    """Loops whose sums are vectorised, and one that is not: equal to rounding, whatever the level."""
    code = """
import numpy as np, sparsekit as sk
from sklearn.datasets import load_breast_cancer
from sparsekit._cython.fenchel_young import _dual_ascent
X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
model = sk.L1LogisticOBA(C=0.1, tol=1e-9).fit(X, y)
Z = np.random.default_rng(0).standard_normal((50, 70))
extreme = sk.ExtremeSoftmaxSGD(learning_rate=0.1, max_iter=2, random_state=0, n_jobs=1).fit(X, y)
P, W, order = np.eye(5)[y], np.zeros((X.shape[1], 5)), np.arange(3 * len(X)) % len(X)
sweeps = np.full(len(X), 1.0 / len(X)), np.square(X).sum(axis=1), P, W, False, 1e-2
_dual_ascent.ascend_dense(X, order, *sweeps)
print(model.objective_, float(np.abs(sk.sparsemax(Z)).max()), float(np.abs(extreme.coef_).sum()))
print(float(np.abs(W).sum()), float(np.square(P).sum()))
"""
    found = {
        level: [float(value) for value in run_python(code, env={"SPARSEKIT_SIMD": level}).split()]
        for level in simd_levels()
    }
    assert simd_level() in found
    for level, values in found.items():
        assert values == pytest.approx(found["baseline"], rel=1e-9), level
