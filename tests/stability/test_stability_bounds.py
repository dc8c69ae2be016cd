"""The bounds of false selections: against linear programs, a brute-force search, and simulated false
selections.
"""

import numpy as np
import pytest
from reference_stability import concave_tail as searched_tail
from reference_stability import unimodal_tail

from sparsekit import LassoOBA, StabilitySelection
from sparsekit._stability.solver.bounds import (
    ASSUMPTIONS,
    concave_tail,
    expected_false,
    largest_selection,
    votes_needed,
)


def test_without_assumptions_it_is_meinshausen_and_buehlmanns():
    for q, p, threshold in [(10, 1000, 0.9), (22, 1000, 0.75), (3, 30, 0.6)]:
        expected = q**2 / (p * (2 * threshold - 1))
        assert expected_false(q, p, threshold, 50, "none") == pytest.approx(expected, rel=1e-12)
    # the threshold counts by the votes that it takes: 0.61 of 10 halves are 7
    assert votes_needed(0.61, 5) == 7 and votes_needed(0.6, 5) == 6 and votes_needed(1.0, 5) == 10
    assert expected_false(1, 100, 0.61, 5, "none") == pytest.approx(0.01 / 0.4)
    assert expected_false(0, 100, 0.6, 5, "none") == 0


@pytest.mark.parametrize(
    "n_pairs, q, votes", [(10, 1, 12), (10, 1, 15), (10, 1, 18), (20, 3, 33), (8, 2, 16)]
)
def test_unimodal_is_the_largest_tail(n_pairs, q, votes):
    p, threshold = 10, votes / (2 * n_pairs)
    tail = unimodal_tail((q / p) ** 2, votes - n_pairs, n_pairs)
    assert expected_false(q, p, threshold, n_pairs, "unimodal") == pytest.approx(tail * p, rel=1e-9)


def test_unimodal_falls_back_where_it_says_nothing():
    # one vote above half of them, and a large share of features
    for q, p, threshold in [(9, 10, 0.9), (2, 10, 0.51)]:
        assert expected_false(q, p, threshold, 50, "unimodal") == expected_false(q, p, threshold, 50, "none")


@pytest.mark.parametrize(
    "size, eta, t, r", [(5, 0.1, 3, -0.5), (6, 0.05, 4, -0.5), (6, 0.15, 4, -0.25), (7, 0.05, 7, -0.5)]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_concave_tails_are_the_largest(size, eta, t, r):
    found = concave_tail(eta, t, size, r)
    assert found == pytest.approx(searched_tail(eta, t, size, r, starts=4), rel=1e-5)


def test_assumptions_sharpen_the_bound():
    for p in (10, 100, 1000):
        for threshold in (0.6, 0.75, 0.9):
            bounds = [expected_false(p // 10, p, threshold, 50, assumption) for assumption in ASSUMPTIONS]
            assert bounds == sorted(bounds, reverse=True) and bounds[-1] > 0
            most = [largest_selection(1.0, p, threshold, 50, assumption) for assumption in ASSUMPTIONS]
            assert most == sorted(most) and most[0] >= 1


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
def test_the_largest_selection_meets_the_bound_and_one_more_does_not(assumption):
    for p in (1, 2, 7, 300):
        for max_false in (0.3, 1.0, 5.0):
            q = largest_selection(max_false, p, 0.7, 50, assumption)
            assert q == 0 or expected_false(q, p, 0.7, 50, assumption) <= max_false * (1 + 1e-9)
            assert q == p or expected_false(q + 1, p, 0.7, 50, assumption) > max_false
    bounds = [expected_false(q, 300, 0.7, 50, assumption) for q in range(301)]
    assert (np.diff(bounds) >= -1e-9).all() and bounds[-1] == 300


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
@pytest.mark.thorough(keep=1)
def test_false_selections_stay_below_the_bound(assumption):
    """Two hundred features of noise and three that matter, 20 times."""
    false, bounds, found = [], [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((100, 203))
        y = X[:, :3] @ [1.0, -1.0, 1.0] + rng.standard_normal(100)
        model = StabilitySelection(
            LassoOBA(), max_false=2.0, assumption=assumption, n_pairs=25, random_state=seed
        ).fit(X, y)
        support = model.get_support(indices=True)
        false.append(np.sum(support >= 3))
        found.append(np.sum(support < 3))
        bounds.append(model.expected_false_)
    assert np.mean(false) <= np.mean(bounds) <= 2.0
    assert np.mean(found) > 2.5
