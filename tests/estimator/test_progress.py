"""Lines that fits of many parts print as they go, and Ctrl-C between them."""

import re

import numpy as np
import pytest

import sparsekit as sk

X = np.random.default_rng(0).standard_normal((40, 3))
y = (X[:, 0] > 0).astype(int)
# an estimator with 4 parts and a way to interrupt the third of them
PARTS = {
    "L1LogisticOBACV  fold": lambda call: sk.L1LogisticOBACV(Cs=[1.0], cv=4, verbose=1, scoring=call),
    "LassoOBACV  fold": lambda call: sk.LassoOBACV(alphas=[0.1], cv=4, verbose=1, scoring=call),
    "StabilitySelection  half": lambda call: sk.StabilitySelection(
        sk.L1LogisticOBA(callback=call), n_pairs=2, penalties=[1.0], verbose=1
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("name", PARTS)
def test_a_line_a_part_before_the_end(name, n_jobs, capsys):
    seen = []

    def call(*args, **kwargs):
        seen.append(capsys.readouterr().out)
        return 0.0

    PARTS[name](call).set_params(n_jobs=n_jobs).fit(X, y)
    seen.append(capsys.readouterr().out)
    lines = "".join(seen).splitlines()
    assert [re.sub(r"\d+\.\d+ s$", "s", line) for line in lines] == [
        f"{name} {k + 1} of 4  s" for k in range(4)
    ]
    assert n_jobs == 2 or len(seen[-1].splitlines()) == 1  # the others came on the way


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", PARTS)
def test_an_interrupt_comes_through(name):
    calls = []

    def call(*args, **kwargs):
        calls.append(None)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return 0.0

    with pytest.raises(KeyboardInterrupt):
        PARTS[name](call).fit(X, y)
