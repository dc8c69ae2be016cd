"""The fuzzers' own rules: how many examples, the same ones by the same seed, and failures that are seen."""

import importlib
import inspect
from pathlib import Path

import fuzz_budget
import fuzz_models
import numpy as np
import pytest
import scipy.sparse as sp
from fuzz_matrices import LAYOUTS, as_layout
from fuzz_outcomes import Refused, clear

import sparsekit as sk


def fuzzers():
    """Share and number of tests of every fuzzer."""
    for file in sorted(Path(__file__).parent.glob("test_fuzz_*.py")):
        module = importlib.import_module(file.stem)
        for _, test in inspect.getmembers(module, lambda value: hasattr(value, "share")):
            sizes = [len(mark.args[1]) for mark in test.pytestmark if mark.name == "parametrize"]
            yield test.share, int(np.prod([size for size in sizes])), test.parts


def test_shares_add_up():
    found = list(fuzzers())
    assert len(found) > 15
    assert sum(share * tests // parts for share, tests, parts in found) == fuzz_budget.SHARES


def test_all_estimators_are_fuzzed():
    public = {name for name in sk.__all__ if hasattr(getattr(sk, name), "fit")}
    # a selector, which fits these models to halves of what it is given, and one whose X is no matrix
    assert set(fuzz_models.MODELS) == public - {"StabilitySelection", "SequenceTagger"}
    sequences = sk.SequenceTagger, None, fuzz_models.SEQUENCES
    for kind, _, parameters in [*fuzz_models.MODELS.values(), sequences]:
        own = set(kind().get_params())
        # what is printed, and what depends on the clock
        assert own - set(parameters) <= {"verbose", "max_time", "callback"}, kind
        assert set(parameters) <= own


def test_totals(monkeypatch):
    monkeypatch.delenv("SPARSEKIT_FUZZ_EXAMPLES", raising=False)
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "night")
    assert fuzz_budget.examples(fuzz_budget.SHARES) == 100_000
    monkeypatch.setenv("SPARSEKIT_FUZZ_EXAMPLES", "0600")
    assert fuzz_budget.examples(fuzz_budget.SHARES / 2) == 300 and fuzz_budget.examples(1e-6) == 1


def test_the_seed_is_kept_and_ci_has_none(monkeypatch):
    monkeypatch.setenv("SPARSEKIT_FUZZ_SEED", "5")
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "night")
    fuzz_budget.settle()
    assert fuzz_budget.first_seed() == 5 and "SPARSEKIT_FUZZ_SEED=5" in fuzz_budget.header()
    monkeypatch.delenv("SPARSEKIT_FUZZ_SEED")
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "fixed")
    fuzz_budget.settle()
    assert fuzz_budget.first_seed() == 0


def test_what_is_no_clear_error_is_seen():
    with pytest.raises(AssertionError, match="no clear error"), clear():
        np.zeros(3) + np.zeros(4)
    with pytest.raises(AssertionError, match="no clear error"), clear():
        raise ValueError("too short")
    with pytest.raises(Refused), clear():
        sk.LassoOBA(alpha=-1.0).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ZeroDivisionError), clear():
        raise ZeroDivisionError


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_layouts_hold_the_same_numbers(layout):
    A = np.arange(12.0).reshape(4, 3) % 5
    X = as_layout(A, layout)
    if layout == "spare entries":  # SciPy reads them, or fails
        X.data, X.indices = X.data[: X.indptr[-1]], X.indices[: X.indptr[-1]]
    found = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    np.testing.assert_array_equal(found, A)
