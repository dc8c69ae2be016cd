"""ExtremeSoftmaxSGD on rows in blocks."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from blocks_in_memory import ListOfBlocks
from sklearn.datasets import load_digits

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._extreme.estimators.block_rows import RowsOfFit

METHODS = ["implicit", "umax", "ove", "nce", "is", "sgd"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def cut(X, ends=(0, 500, 500, 1200, None)):
    """Blocks of X, one of them empty."""
    return ListOfBlocks([X[lo:hi] for lo, hi in itertools.pairwise(ends)])


def model(**options):
    return ExtremeSoftmaxSGD(
        **{"learning_rate": 5.0, "max_iter": 8, "random_state": 0, "tol": 0.0, **options}
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_to_blocks_is_as_good_as_one_in_memory(digits, method):
    X, y = digits
    rate = {"implicit": 5.0, "sgd": 0.05}.get(method, 0.5)
    options = dict(method=method, learning_rate=rate, max_iter=30)
    whole, parts = model(**options).fit(X, y), model(**options).fit(cut(X), y)
    assert parts.coef_.shape == whole.coef_.shape and parts.t_ == whole.t_ == 30 * len(X)
    assert parts.n_features_in_ == 64 and len(parts.objective_curve_) == 30
    assert abs(parts.score(X, y) - whole.score(X, y)) < 0.02
    # the same rows are evaluated, of a model that took other steps
    assert parts.objective_ == pytest.approx(whole.objective_, rel=0.15)
    assert parts.objective_error_ == pytest.approx(whole.objective_error_, rel=0.3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hash_bits": 12},
        {"batch_size": 10, "method": "is", "learning_rate": 1.0},
        {"noise": "frequency"},
        {"noise": "uniform", "n_negatives": 5},
        {"method": "umax", "alpha": 1e-3, "learning_rate": 0.1},
        {"learning_rate": "auto", "max_iter": 3},
    ],
)
def test_parameters_go_with_blocks(digits, options):
    X, y = digits
    X = sp.csr_array(X.astype(np.float32))
    parts = model(**options).fit(cut(X), y)
    assert parts.score(X, y) > 0.8
    again = model(**options).fit(cut(X), y)
    weights = "table_" if "hash_bits" in options else "coef_"
    np.testing.assert_array_equal(getattr(parts, weights), getattr(again, weights))
    assert getattr(parts, weights).dtype == np.float32


def test_the_order_of_blocks_and_rows(digits, monkeypatch):
    X, y = digits
    orders = []
    read = RowsOfFit.read

    def spy(self, numbers):
        orders.append(list(numbers))
        return read(self, numbers)

    monkeypatch.setattr(RowsOfFit, "read", spy)
    model(shuffle=False).fit(cut(X), y)
    assert orders == [[0, 1, 2, 3]] * 8
    orders.clear()
    model().fit(cut(X), y)
    assert len({tuple(order) for order in orders}) > 1
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    # rows in their order, however they are cut: steps are those of one block, but for the draws of negatives
    every = dict(shuffle=False, n_negatives=9, method="sgd", learning_rate=0.02, max_iter=1)
    one = model(**every).fit(X, y)
    np.testing.assert_allclose(model(**every).fit(cut(X), y).coef_, one.coef_, rtol=1e-10, atol=1e-12)
    assert abs(model(**every | {"shuffle": True}).fit(X, y).coef_ - one.coef_).max() > 1e-4


@pytest.mark.parametrize("method", ["umax", "implicit"])
def test_what_is_known_of_a_row_is_kept_for_the_next_epoch(digits, method):
    """Its number u, without which the steps are others."""
    X, y = digits
    every = dict(shuffle=False, n_negatives=9, method=method, learning_rate=0.1, max_iter=4)
    one = model(**every).fit(X, y)
    np.testing.assert_allclose(model(**every).fit(cut(X), y).coef_, one.coef_, rtol=1e-10, atol=1e-12)


def test_partial_fit_takes_blocks_as_the_calls_for_each(digits):
    X, y = digits
    options = dict(shuffle=False, n_negatives=9, method="sgd", learning_rate=0.02)
    whole = model(**options).partial_fit(cut(X), y)
    single = model(**options)
    for rows in (slice(500), slice(500, 1200), slice(1200, None)):
        single.partial_fit(X[rows], y[rows], classes=np.arange(10))
    np.testing.assert_allclose(whole.coef_, single.coef_, rtol=1e-10, atol=1e-12)
    assert whole.t_ == single.t_ == len(X)
    twice = model(**options).partial_fit(cut(X), y).partial_fit(cut(X), y)
    np.testing.assert_array_equal(twice._counts, 2 * np.bincount(y))
    # and goes on with either, with new labels
    whole.partial_fit(cut(X), y + 5).partial_fit(X.astype(np.float32), y)
    assert len(whole.classes_) == 15 and whole.t_ == 3 * len(X) and whole.coef_.dtype == np.float64
    closed = model().partial_fit(X, y, classes=np.arange(10))
    with pytest.raises(ValueError, match="label 10, which is not among the classes"):
        closed.partial_fit(cut(X), y + 5)


@pytest.mark.parametrize("label_choice", ["first", "sample"])
def test_several_labels_and_weights(digits, label_choice):
    X, y = digits
    Y = sp.csr_array((np.ones(len(y)), (np.arange(len(y)), y)), shape=(len(y), 12))
    Y = (Y + sp.csr_array((np.arange(len(y)) % 7 == 0)[:, None] * (np.arange(12) == 11) * 1.0)).tocsr()
    Y.data[:40] = 0.0  # rows without a label
    weight = np.ones(len(y))
    weight[600:700] = 0.0
    whole, parts = (
        model(label_choice=label_choice).fit(data, Y, sample_weight=weight) for data in (X, cut(X))
    )
    assert parts.multilabel_ and parts.t_ == whole.t_ and parts._mean_labels == whole._mean_labels
    np.testing.assert_allclose(parts._counts, whole._counts)
    hits = [(found.predict_topk(X, 2)[0] == y[:, None]).any(axis=1).mean() for found in (whole, parts)]
    assert min(hits) > 0.9 and abs(hits[0] - hits[1]) < 0.02


def test_only_ratios_of_the_weights_of_rows_that_count_matter(digits):
    X, y = digits
    labelled = np.arange(len(y)) % 3 > 0
    Y = sp.csr_array((labelled * 1.0, (np.arange(len(y)), y)), shape=(len(y), 10))
    found = model().fit(cut(X), Y, sample_weight=np.where(labelled, 4.0, 1000.0))
    np.testing.assert_array_equal(found.coef_, model().fit(cut(X), Y).coef_)


def test_blocks_that_do_not_go_together_are_named(digits):
    X, y = digits
    dirty = X.copy()
    dirty[700, 3] = np.nan
    with pytest.raises(ValueError, match=r"block 2 of X contains NaN"):
        model().fit(cut(dirty), y)
    mixed = cut(X)
    mixed.matrices[3] = mixed.matrices[3].astype(np.float32)
    with pytest.raises(ValueError, match=r"block 3 of X is float32, X is float64"):
        model().fit(mixed, y)
    narrow = cut(X)
    narrow.matrices[2] = narrow.matrices[2][:, :5]
    with pytest.raises(ValueError, match=r"block 2 of X has 5 columns, and X has 64"):
        model().fit(narrow, y)
    for change, n in ((lambda A: A[:-1], 596), (lambda A: np.vstack([A, A[:1]]), 598)):
        other = cut(X)
        other.matrices[3] = change(other.matrices[3])
        with pytest.raises(ValueError, match=f"block 3 of X has {n} rows, where 597 were expected"):
            model().fit(other, y)
    for rows in (10, 1796, 1798):
        with pytest.raises(ValueError, match=f"y has {rows} rows, and X has 1797"):
            model().fit(cut(X), np.resize(y, rows))
        with pytest.raises(ValueError, match=f"sample_weight has {rows} rows, and X has 1797"):
            model().fit(cut(X), y, sample_weight=np.ones(rows))
    with pytest.raises(ValueError, match="X has 5 features, but ExtremeSoftmaxSGD is expecting 64"):
        model().partial_fit(X, y).partial_fit(cut(X[:, :5]), y)
    with pytest.raises(ValueError, match="at least one non-zero number"):
        model().partial_fit(cut(X), y, sample_weight=0.0)


def test_names_of_the_features_are_those_of_the_blocks(digits):
    X, y = digits
    names = [f"pixel {j}" for j in range(64)]

    def named(names):
        blocks = cut(X)
        blocks.feature_names = names
        return blocks

    found = model(max_iter=1).fit(named(names), y)
    assert list(found.feature_names_in_) == names
    found.partial_fit(named(names), y).partial_fit(cut(X), y)
    with pytest.raises(ValueError, match=r"X has the feature 'ink' where '.*' was at the fit"):
        found.partial_fit(named([*names[:-1], "ink"]), y)
    assert not hasattr(found.fit(cut(X), y), "feature_names_in_")


def test_a_dask_array_is_read_block_by_block(digits):
    da = pytest.importorskip("dask.array")
    X, y = digits
    expected = model().fit(cut(X, (0, 500, 1000, 1500, None)), y)
    lazy = da.from_array(X, chunks=(500, -1))
    for target in (y, da.from_array(y, chunks=500), da.from_array(y, chunks=300)):
        np.testing.assert_array_equal(model().fit(lazy, target).coef_, expected.coef_)
    sparse = lazy.map_blocks(sp.csr_array)
    assert model().fit(sparse, y).score(X, y) > 0.9
    unknown = lazy[lazy[:, 0] >= 0]
    with pytest.raises(ValueError, match=r"the sizes of X's chunks are unknown.*compute_chunk_sizes"):
        model().fit(unknown, y)
    found = model().fit(unknown, da.from_array(y, chunks=500)[lazy[:, 0] >= 0])
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    with pytest.raises(ValueError, match=r"a row must lie in one chunk"):
        model().fit(da.from_array(X, chunks=(500, 10)), y)


def test_limits_and_the_callback_see_whole_epochs(digits):
    X, y = digits
    seen = []

    def stop(intermediate_result):
        seen.append((intermediate_result.nit, intermediate_result.learning_rate))
        return intermediate_result.nit == 3

    found = model(callback=stop, decay=0.9).fit(cut(X), y)
    assert seen == [(1, 5.0), (2, 4.5), (3, pytest.approx(4.05))] and found.n_iter_ == 3
    assert model(max_time=1e-9, max_iter=50).fit(cut(X), y).n_iter_ == 1


def test_a_rate_that_diverges_is_lowered(digits, monkeypatch):
    X, y = digits
    from sparsekit._extreme.estimators import calls

    def too_large(model, source, options, noise, rng):
        model.learning_rate_, model.learning_rate_losses_ = 1e6, {1e6: 0.1}
        return 1e6

    monkeypatch.setattr(calls, "choose_rate", too_large)
    found = model(method="sgd", learning_rate="auto", alpha=0.0).fit(cut(X * 100), y)
    assert found.learning_rate_ < 1e6 and found.learning_rate_losses_[1e6] == np.inf
    assert np.isfinite(found.coef_).all() and found.n_iter_ == 8
