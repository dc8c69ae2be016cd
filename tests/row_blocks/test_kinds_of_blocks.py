"""What X, y and the weights may be, and what is refused and how."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from blocks_in_memory import ListOfBlocks
from numpy.testing import assert_allclose, assert_array_equal
from row_data import CUTS, as_dask, cut, in_blocks, labels, text

from sparsekit import ExtremeSoftmaxSGD, L1LogisticOBA, LassoOBA, SoftmaxClassifier
from sparsekit._row_blocks.blocks import as_matrix

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

SIZES = tuple(np.diff(CUTS).tolist())


@pytest.fixture(scope="module")
def data():
    X, scores = text(p=60)
    return X, labels(scores), scores


@pytest.fixture(scope="module")
def model(data):
    """That of main memory."""
    return L1LogisticOBA(tol=1e-8).fit(data[0], data[1])


def assert_same(found, wanted):
    assert_allclose(found.objective_, wanted.objective_, rtol=1e-8)
    assert_allclose(found.coef_, wanted.coef_, atol=1e-4)
    assert_allclose(found.intercept_, wanted.intercept_, atol=1e-4)
    assert_array_equal(found.classes_, wanted.classes_)
    assert found.n_features_in_ == wanted.n_features_in_


def rows_of_unknown_number(parts):
    """A Dask array with a chunk for each block's part."""
    import dask

    parts = [da.from_delayed(dask.delayed(part), (np.nan,), dtype=part.dtype) for part in parts]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


X_KINDS = {
    "list": in_blocks,
    "csr_matrix": as_dask,
    "csr_array": lambda X: as_dask(sp.csr_array(X)),
    "csc": lambda X: in_blocks(sp.csc_array(X)),
    "int64 indices": lambda X: in_blocks(
        sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    ),
    "numpy": lambda X: da.from_array(X.toarray(), chunks=(SIZES, -1)),
    "fortran": lambda X: in_blocks(np.asfortranarray(X.toarray())),
    "strided": lambda X: in_blocks(np.repeat(X.toarray(), 2, axis=1)[:, ::2]),
    "read-only": lambda X: in_blocks(frozen(X)),
    "unknown sizes": lambda X: as_dask(X, sizes=False),
}


def frozen(X):
    X = X.copy()
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


@pytest.mark.parametrize("kind", X_KINDS)
def test_kinds_of_x(kind, data, model):
    X, y, _ = data
    blocks = X_KINDS[kind](X)
    targets = rows_of_unknown_number(cut(y)) if kind == "unknown sizes" else y
    found = L1LogisticOBA(tol=1e-8).fit(blocks, targets)
    assert_same(found, model)
    assert found.n_rounds_ >= 4
    assert not hasattr(model, "n_rounds_")


def test_a_data_frame_names_the_features(data):
    X, y, _ = data
    frame = pd.DataFrame(X.toarray()).rename(columns="word {}".format)
    frame["y"] = y
    blocks = dd.from_pandas(frame, npartitions=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = L1LogisticOBA(tol=1e-8, penalty_weights={"word 3": 0.0}).fit(
            blocks.drop(columns="y"), blocks["y"]
        )
    assert_same(found, L1LogisticOBA(tol=1e-8, penalty_weights={3: 0.0}).fit(X, y))
    assert_array_equal(found.feature_names_in_, frame.columns[:-1])
    lazy, here = blocks.drop(columns="y"), frame.drop(columns="y")
    assert_array_equal(found.predict(lazy).compute(), found.predict(here))
    assert found.score(lazy, blocks["y"]) == found.score(here, y)
    found.set_params(penalty_weights=None).fit(in_blocks(X), y)
    assert not hasattr(found, "feature_names_in_")
    # partitions that a filter leaves empty
    few = blocks[blocks["word 0"] >= 0].loc[200:]
    found.fit(few.drop(columns="y"), few["y"])
    assert_same(found, L1LogisticOBA(tol=1e-8).fit(X[200:], y[200:]))


def kinds_of_rows(rows):
    return {
        "numpy": rows,
        "list": rows.tolist(),
        "series": pd.Series(rows, index=np.arange(len(rows))[::-1] + 0.5),
        "column": rows.reshape(-1, 1),
        "dask": da.from_array(rows, chunks=(SIZES,)),
        "other chunks": da.from_array(rows, chunks=77),
        "dask column": da.from_array(rows.reshape(-1, 1), chunks=(SIZES, 1)),
        "dask series": dd.from_map(pd.Series, [part for part in cut(rows) if len(part)]),
    }


ROW_KINDS = list(kinds_of_rows(np.zeros(500)))


@pytest.mark.parametrize("make", [in_blocks, as_dask])
@pytest.mark.parametrize("kind", ROW_KINDS)
def test_kinds_of_y_and_weights(kind, make, data):
    X, y, scores = data
    blocks = make(X)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    wanted = L1LogisticOBA(tol=1e-8).fit(X, y, weight)
    own = (
        kinds_of_rows(weight)[kind.removesuffix(" column") if "column" in kind else kind]
        if kind != "column"
        else weight
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if "column" in kind else "error")  # as in main memory
        assert_same(L1LogisticOBA(tol=1e-8).fit(blocks, kinds_of_rows(y)[kind], own), wanted)
        lasso = LassoOBA(alpha=1e-3, tol=1e-9).fit(blocks, kinds_of_rows(scores)[kind], own)
    assert_allclose(
        lasso.objective_, LassoOBA(alpha=1e-3, tol=1e-9).fit(X, scores, weight).objective_, rtol=1e-8
    )


def test_one_weight_for_all(data):
    X, y, _ = data
    wanted = L1LogisticOBA(tol=1e-8).fit(X, y, 2.5)
    for blocks in (in_blocks(X), as_dask(X), as_dask(X, sizes=False)):
        targets = rows_of_unknown_number(cut(y)) if np.isnan(blocks.shape[0]) else y
        assert_same(L1LogisticOBA(tol=1e-8).fit(blocks, targets, 2.5), wanted)


@pytest.mark.parametrize("kind", ["object", "bool", "float", "category", "int8", "pyarrow"])
def test_kinds_of_labels(kind, data):
    X, y, _ = data
    first = y == y[0]
    if kind == "category":
        rows = dd.from_pandas(pd.Series(y).astype("category"), npartitions=4)
    elif kind == "pyarrow":
        pytest.importorskip("pyarrow")
        rows = dd.from_pandas(pd.Series(y, dtype="string[pyarrow]"), npartitions=4)
    elif kind == "object":
        rows = y.astype(object)
    else:
        rows = first.astype(kind)
    here = np.asarray(rows.compute() if hasattr(rows, "compute") else rows)
    cuts = np.append(0, np.cumsum(rows.map_partitions(len).compute())) if hasattr(rows, "compute") else CUTS
    wanted = L1LogisticOBA(tol=1e-8).fit(X, here)
    found = L1LogisticOBA(tol=1e-8).fit(as_dask(X, cuts), rows)
    assert_same(found, wanted)
    assert found.classes_.dtype == wanted.classes_.dtype


# What is refused.


def test_chunks_of_columns(data):
    X, y, _ = data
    with pytest.raises(ValueError, match=r"cut into 3 chunks of columns.*rechunk\(\{1: -1\}\)"):
        L1LogisticOBA().fit(da.from_array(X.toarray(), chunks=(100, 20)), y)


def test_the_wrong_number_of_dimensions(data):
    _, y, scores = data
    with pytest.raises(ValueError, match="two dimensions; got 1"):
        L1LogisticOBA().fit(da.from_array(scores, chunks=100), y)
    with pytest.raises(ValueError, match=r"block 0 of X.*shape \(5,\)"):
        L1LogisticOBA().fit(Source([np.ones(5)], 3), y[:5])


def test_an_unknown_number_of_columns(data):
    import dask

    X, y, _ = data
    blocks = da.from_delayed(dask.delayed(X), (500, np.nan), dtype=float)
    with pytest.raises(ValueError, match="number of columns of X is unknown"):
        L1LogisticOBA().fit(blocks, y)


def test_a_collection_that_has_no_rows():
    bag = pytest.importorskip("dask.bag").from_sequence([1, 2], npartitions=2)
    with pytest.raises(TypeError, match="X must be a Dask array or data frame; got Bag"):
        L1LogisticOBA().fit(bag, [0, 1])


class Source:
    """Blocks that need not go together."""

    def __init__(self, matrices, p):
        self.matrices, self.n_blocks = matrices, len(matrices)
        self.starts = np.append(0, np.cumsum([len(m) if m.ndim == 1 else m.shape[0] for m in matrices]))
        self.shape = (int(self.starts[-1]), p)

    def block(self, i):
        return self.matrices[i]


def spoiled(X, how):
    """The blocks of X, of which the fourth is as it must not be."""
    parts = [part.copy() for part in cut(X)]
    bad = parts[4]
    if how == "columns":
        parts[4] = bad[:, :-1]
    elif how == "float32":
        parts[4] = bad.astype(np.float32)
    elif how == "dense":
        parts[4] = bad.toarray()
    elif how == "complex":
        parts[4] = bad.astype(complex)
    elif how == "text":
        parts[4] = np.full(bad.shape, "a", dtype=object)
    else:
        bad.data[[3, 9]] = {"nan": [np.nan, 1], "inf": [np.inf, -np.inf], "-inf": [-np.inf, 1]}[how]
    return parts


REFUSED = {
    "columns": "block 4 of X has 59 columns, and X has 60",
    "float32": "block 4 of X is sparse float32, block 0 is sparse float64",
    "dense": "block 4 of X is dense float64, block 0 is sparse float64",
    "complex": "block 4 of X is no matrix of numbers: Complex data not supported",
    "text": "block 4 of X is no matrix of numbers: could not convert string to float",
    "nan": "block 4 of X contains NaN",
    "inf": "block 4 of X contains infinity",
    "-inf": "block 4 of X contains infinity",
}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("how", REFUSED)
def test_a_block_that_does_not_fit(how, lazy, data):
    import dask

    X, y, _ = data
    parts = spoiled(X, how)
    blocks = Source(parts, 60)
    if lazy:
        arrays = [
            da.from_delayed(dask.delayed(part), (part.shape[0], 60), dtype=float, meta=X[:0])
            for part in parts
        ]
        arrays[3] = arrays[3].map_blocks(lambda part: part, chunks=((np.nan,), (60,)), meta=X[:0])
        blocks = da.concatenate(arrays, allow_unknown_chunksizes=True)
        y = rows_of_unknown_number(cut(y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=REFUSED[how]):
            L1LogisticOBA().fit(blocks, y)


def test_rows_of_y_that_are_not_those_of_x(data):
    X, y, _ = data
    for blocks in (in_blocks(X), as_dask(X)):
        for n in (499, 501):
            with pytest.raises(ValueError, match=f"y has {n} rows, and X has 500"):
                L1LogisticOBA().fit(blocks, np.resize(y, n))
        with pytest.raises(ValueError, match="sample_weight has 3 rows, and X has 500"):
            L1LogisticOBA().fit(blocks, y, np.ones(3))
    with pytest.raises(ValueError, match="y has 499 rows, and X has 500"):
        L1LogisticOBA().fit(as_dask(X), da.from_array(y[1:], chunks=100))
    lazy = as_dask(X, sizes=False)
    with pytest.raises(ValueError, match="y has 2 chunks, and X has 5"):
        L1LogisticOBA().fit(lazy, da.from_array(y, chunks=250))
    with pytest.raises(ValueError, match=r"block \d of X has \d+ rows, and 100 of y"):
        L1LogisticOBA().fit(lazy, da.from_array(y, chunks=100))
    for number, n in ((0, 129), (0, 131), (4, 181)):
        parts = cut(y)
        parts[number] = np.resize(parts[number], n)
        with pytest.raises(ValueError, match=rf"block {number} of X has {SIZES[number]} rows, and {n} of y"):
            L1LogisticOBA().fit(lazy, rows_of_unknown_number(parts))
    with pytest.raises(ValueError, match=r"sizes of X's chunks are unknown.*compute_chunk_sizes"):
        L1LogisticOBA().fit(lazy, y)
    frame = dd.from_pandas(pd.DataFrame(X.toarray()), npartitions=2)
    with pytest.raises(ValueError, match=r"sizes of X's partitions are unknown.*Dask series"):
        L1LogisticOBA().fit(frame, y)


@pytest.mark.parametrize("estimator", [L1LogisticOBA(), LassoOBA()])
def test_targets_that_are_refused_in_main_memory_too(estimator, data):
    X, y, scores = data
    y = scores.copy() if isinstance(estimator, LassoOBA) else y.astype(object)
    y[7] = np.nan
    for blocks in (in_blocks(X), as_dask(X)):
        with pytest.raises(ValueError, match="Input y contains NaN"):
            estimator.fit(blocks, y)
        with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
            estimator.fit(blocks, None)
        for weight, why in ((-1.0, "Negative values"), (0.0, "at least one non-zero"), (np.inf, "infinity")):
            with pytest.raises(ValueError, match=why):
                estimator.fit(blocks, scores > 0, weight)
    with pytest.raises(ValueError, match="0 sample"):
        estimator.fit(ListOfBlocks([X[:0], X[:0]]), [])


def test_blocks_are_not_copied_where_kernels_can_read_them(data):
    X = data[0]
    dense = X.toarray()
    assert np.shares_memory(as_matrix(X).data, X.data) and np.shares_memory(as_matrix(dense), dense)
    twice = sp.csr_matrix(([1.0, 2.0], [1, 1], [0, 2]), shape=(1, 3))
    assert as_matrix(twice).nnz == 1 and twice.nnz == 2


@pytest.mark.parametrize("model", [L1LogisticOBA(), SoftmaxClassifier(), ExtremeSoftmaxSGD(max_iter=1)])
def test_indices_out_of_range_are_refused_before_a_kernel_follows_them(model):
    X = sp.random(60, 20, 0.2, format="csr", random_state=0)
    broken = X.copy()
    broken.indices[7] = 99
    blocks = ListOfBlocks([X, broken])
    with pytest.raises(
        ValueError, match=r"^block 1 of X is no valid CSR matrix: row \d+ has the column index 99"
    ):
        model.fit(blocks, np.arange(120) % 3)
