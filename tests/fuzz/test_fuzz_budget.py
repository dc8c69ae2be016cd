"""The fuzzers' own rules: how many examples, the same ones by the same seed, and failures that are seen."""

import importlib
import inspect
from pathlib import Path

import fuzz_budget
import fuzz_models
import numpy as np
import pytest
from fuzz_outcomes import Refused, clear

import sparsekit as sk


def test_shares_add_up():
    total = 0
    for file in sorted(Path(__file__).parent.glob("test_fuzz_*.py")):
        module = importlib.import_module(file.stem)
        for _, test in inspect.getmembers(module, lambda value: hasattr(value, "share")):
            marks = getattr(test, "pytestmark", [])
            cases = [len(mark.args[1]) for mark in marks if mark.name == "parametrize"]
            total += test.share * int(np.prod(cases))
    assert total == fuzz_budget.SHARES


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
