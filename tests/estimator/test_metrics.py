"""The metrics against their definitions, SciPy, and problems with a known solution."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from sparsekit.metrics import jensen_shannon_divergence, kkt_violation, precision_at_k

numbers = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(numbers, numbers, st.floats(0, 1e6)), min_size=1, max_size=5))
def test_is_the_largest_median(rows):
    x, g, l1 = np.array(rows).T
    expected = max(abs(float(np.median([g_j - l_j, x_j, g_j + l_j]))) for x_j, g_j, l_j in zip(x, g, l1))
    assert kkt_violation(x, g, l1) == expected


def test_edge_cases_and_errors():
    assert kkt_violation([], [], 1.0) == 0.0
    assert kkt_violation([[0.0], [1.0]], [[0.5], [0.25]], 0.0) == 0.5
    with pytest.raises(ValueError, match="same shape"):
        kkt_violation([1.0, 2.0], [1.0], 1.0)
    with pytest.raises(ValueError, match="l1 must be a number"):
        kkt_violation([1.0, 2.0], [1.0, 1.0], [1.0])
    with pytest.raises(ValueError, match="l1 must be >= 0"):
        kkt_violation([1.0], [1.0], -1.0)


def test_jensen_shannon_divergence():
    rng = np.random.default_rng(0)
    Q = rng.random((20, 5)) * (rng.random((20, 5)) < 0.6) + 1e-3 * np.eye(5)[rng.integers(5, size=20)]
    P = rng.random((20, 5))
    Q, P = Q / Q.sum(axis=1, keepdims=True), P / P.sum(axis=1, keepdims=True)
    each = jensen_shannon_divergence(Q, P, average=False)
    # SciPy's distance is the square root
    np.testing.assert_allclose(each, [jensenshannon(q, p) ** 2 for q, p in zip(Q, P)], rtol=1e-9)
    np.testing.assert_allclose(each, jensen_shannon_divergence(P, Q, average=False))
    assert jensen_shannon_divergence(Q, P) == pytest.approx(each.mean())
    w = rng.random(20)
    assert jensen_shannon_divergence(Q, P, sample_weight=w) == pytest.approx(np.average(each, weights=w))
    assert jensen_shannon_divergence(Q[0], P[0]) == pytest.approx(each[0])
    assert jensen_shannon_divergence(Q, Q) == 0.0
    assert jensen_shannon_divergence([1.0, 0.0], [0.0, 1.0]) == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    "q, p, match",
    [
        ([[1.0, 0.0]], [[1.0]], "same shape"),
        ([[1.0, 0.2]], [[1.0, 0.0]], "rows of q must be distributions"),
        ([[1.0, 0.0]], [[1.5, -0.5]], "rows of p must be distributions"),
        ([[np.nan, 0.0]], [[1.0, 0.0]], "rows of q"),
        (1.0, 1.0, "same shape"),
    ],
)
def test_divergence_refuses_what_is_no_distribution(q, p, match):
    with pytest.raises(ValueError, match=match):
        jensen_shannon_divergence(q, p)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: jensen_shannon_divergence(np.eye(3), np.eye(3)[::-1], sample_weight=s),
        lambda s: precision_at_k([0, 1, 2], np.eye(3, dtype=int), sample_weight=s),
    ],
)
def test_weights_of_rows(call):
    assert call([1.0, 0.0, 3.0]) == pytest.approx(call([1e300, 0.0, 3e300])) == pytest.approx(call([2, 0, 6]))
    for wrong, said in (([1.0, -1.0, 2.0], "weights must be >= 0"), ([0.0] * 3, "at least one non-zero"),
                        ([1.0, 2.0], "one weight per row"), ([np.nan, 1.0, 1.0], "NaN")):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            call(wrong)


def test_no_rows_have_no_mean():
    assert jensen_shannon_divergence(np.empty((0, 2)), np.empty((0, 2)), average=False).shape == (0,)
    with pytest.raises(ValueError, match="there are no rows"):
        jensen_shannon_divergence(np.empty((0, 2)), np.empty((0, 2)))
    with pytest.raises(ValueError, match="there are no rows"):
        precision_at_k([], np.empty((0, 2), dtype=int))


def test_precision_at_k():
    Y = np.array([[1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    top = np.array([[2, 1, 0], [0, 1, 2], [3, 2, 1]])
    expected = {1: 1 / 3, 2: (1 / 2) / 3, 3: (2 / 3) / 3}
    for k, value in expected.items():
        for truth in (Y, Y.tolist(), sp.csr_array(Y), sp.csr_matrix(Y), sp.coo_array(Y)):
            assert precision_at_k(truth, top, k) == pytest.approx(value)
    assert precision_at_k(Y, top) == pytest.approx(expected[3])
    assert precision_at_k(Y, top, 1, sample_weight=[3, 1, 0]) == pytest.approx(0.75)
    labels = np.array(["x", "y", "x"])
    assert precision_at_k(labels, [["x", "z"], ["z", "y"], ["z", "y"]], 1) == pytest.approx(1 / 3)
    assert precision_at_k(labels, [["x", "z"], ["z", "y"], ["z", "y"]]) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="k must be between 1 and the 3 columns of y_top, got 4"):
        precision_at_k(Y, top, 4)
    with pytest.raises(ValueError, match="y_true has 2 rows, y_top 3"):
        precision_at_k(Y[:2], top)
    with pytest.raises(ValueError, match=r"column numbers of y_true, 0 \.\. 3"):
        precision_at_k(Y, top + 2)
    with pytest.raises(ValueError, match="a row of predicted labels"):
        precision_at_k(Y, [1, 2, 3])
