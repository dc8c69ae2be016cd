"""Any sequences, labels and parameters of SequenceTagger."""

import contextlib

import numpy as np
import scipy.sparse as sp
from fuzz_budget import fuzz
from fuzz_matrices import SEEDS, values
from fuzz_models import SEQUENCES
from fuzz_outcomes import Refused, check_finite, check_probabilities, clear
from fuzz_targets import weights
from hypothesis import strategies as st

import sparsekit as sk


def sequences(draw):
    """Matrices of a few sequences, and labels 0, 1, ..."""
    lengths = draw(st.lists(st.integers(0, 6), min_size=1, max_size=8))
    p, K = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    A = values(draw, (sum(lengths), p))
    y = np.random.default_rng(draw(SEEDS)).integers(0, K, size=len(A))
    cuts = np.cumsum(lengths)[:-1]
    return np.split(A, cuts), [part.tolist() for part in np.split(y, cuts)]


def as_dicts(X):
    return [[{f"f{j}": float(v) for j, v in enumerate(row) if v} for row in x] for x in X]


@fuzz(share=30)
def test_any_sequences(draw):
    X, y = sequences(draw)
    form = draw(st.sampled_from([np.asarray, as_dicts, sp.csr_matrix, np.float32]))
    with np.errstate(over="ignore"):
        X = form(X) if form is as_dicts else [form(x) for x in X]
    chosen = draw(st.lists(st.sampled_from(sorted(SEQUENCES)), max_size=5, unique=True))
    model = sk.SequenceTagger(**{key: draw(SEQUENCES[key]) for key in ["max_iter", *chosen]})
    with contextlib.suppress(Refused):
        with clear():
            model.fit(X, y, sample_weight=draw(weights(len(X))))
        check_finite(model)
        assert np.isfinite(model.transitions_).all()
        with clear():
            labels = model.predict(X)
        assert [len(part) for part in labels] == [len(part) for part in y]
        assert {label for part in labels for label in part} <= set(model.classes_.tolist())
        if hasattr(model, "predict_proba"):
            for part in model.predict_proba(X):
                check_probabilities(model, part)
        if hasattr(model, "partial_fit"):
            with clear():
                model.partial_fit(X, y)
            check_finite(model)
