"""Some cases of one test of each module and estimator: results on the device against those of the CPU."""

from __future__ import annotations

from importlib.util import find_spec

from .options import Skipped
from .pytest_cases import run_tests

TASK_LIMIT, AT_ONCE = 90, True
CASES = 6
CASES_OF_ESTIMATORS = 24

# of each CUDA source and what stands on it, then of each estimator, in the order of what is built on what
CHECKS = {
    "fenchel_young/sparsemax": "test_gpu_sparsemax.py::test_forward",
    "losses": "test_gpu_oba.py::test_models_without_a_matrix",
    "shared/sparse": "test_gpu_fenchel_young.py::test_products_of_uneven_rows",
    "designs": "test_gpu_oba_kernels.py::test_designs",
    "shared/model": "test_gpu_oba_models.py::test_cycles_are_those_of_the_cpu",
    "class operators": "test_gpu_multinomial.py::test_models",
    "curvature": "test_gpu_fenchel_young.py::test_passes_of_conjugate_gradients",
    "shared/pairs": "test_gpu_pairs.py::test_directions_follow_the_free_set",
    "extreme/extreme": "test_gpu_extreme.py::test_one_row_at_a_time_is_the_cpus_step",
    "ranking": "test_gpu_ranking.py::test_rankings",
    "factor_graph/factor_graph": "test_gpu_factor_graph.py::test_kernels_like_those_of_the_cpu",
    "estimators": "test_gpu_fits.py::test_fits_are_those_of_main_memory",
    "GLMOBA": "test_gpu_glm.py::test_fits_are_those_of_main_memory",
    "ExtremeSoftmaxSGD": "test_gpu_extreme_fits.py::test_dense_rows_weights_and_other_labels",
    "minimize_nqn": "test_gpu_nqn.py::test_iterates_are_those_of_main_memory",
    "LPSparseMAPClassifier": "test_gpu_lp_sparsemap_classifier.py::test_fits",
    "PyTorch": "test_gpu_torch.py::test_operators",
}
IN_DRY_RUN = ("fenchel_young/sparsemax", "ranking", "PyTorch")


def tasks(options):
    return [name for name in CHECKS if name in IN_DRY_RUN or not options.dry_run]


def run(task, options):
    if task == "PyTorch" and find_spec("torch") is None:
        raise Skipped("PyTorch is not installed")
    cases = CASES_OF_ESTIMATORS if task == "estimators" else CASES
    return run_tests([CHECKS[task]], options, options.size(cases, 1))
