"""Fixtures of the tests of taggers."""

import numpy as np
import pytest

LENGTHS = (4, 1, 3, 0, 5, 2)


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, 3)) for T in LENGTHS]
    y = [np.array(["B-A", "I-A", "O"])[rng.permuted([0, 1, 2, 0, 1])[:T]].tolist() for T in LENGTHS]
    return X, y


@pytest.fixture
def spans():
    """Dicts of features, and labels that obey BIO."""
    rng = np.random.default_rng(1)
    X, y = [], []
    for T in rng.integers(1, 8, size=30):
        labels, words = ["O"], []
        for _ in range(T):
            after = ["O", "B-A", "B-B"] + (["I" + labels[-1][1:]] * 2 if labels[-1] != "O" else [])
            labels.append(str(rng.choice(after)))
            words.append({"word": f"{labels[-1]}{rng.integers(4)}", "bias": 1, "long": bool(rng.integers(2))})
        X.append(words)
        y.append(labels[1:])
    return X, y
