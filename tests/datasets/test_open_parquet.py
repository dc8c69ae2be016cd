"""Row groups of Parquet files as blocks of rows."""

import pickle
import sys

import numpy as np
import pytest
from blocks_in_memory import ListOfBlocks
from numpy.testing import assert_array_equal

import sparsekit
from sparsekit.datasets import ParquetTable, open_parquet

pa = pytest.importorskip("pyarrow", reason="reads Parquet files")
pq = pytest.importorskip("pyarrow.parquet", reason="reads Parquet files")


MODELS = [
    sparsekit.L1LogisticOBA,
    sparsekit.LassoOBA,
    sparsekit.SoftmaxClassifier,
    sparsekit.SoftmaxClassifierCV,
    lambda: sparsekit.ExtremeSoftmaxSGD(random_state=0, max_iter=5, tol=1.0),
]


def table(n=100, dtype=np.float64, seed=0):
    A = np.random.default_rng(seed).random((n, 3)).astype(dtype)
    columns = {name: A[:, j] for j, name in enumerate("abc")}
    return A, pa.table(columns | {"y": np.arange(n) % 3})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(table()[1], path, row_group_size=30)
    return path


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_row_groups_are_blocks(tmp_path, dtype):
    A, content = table(dtype=dtype)
    pq.write_table(content, tmp_path / "a.parquet", row_group_size=30)
    X = open_parquet(tmp_path / "a.parquet", target="y")
    assert X.shape == (100, 3) and X.dtype == dtype and X.columns == ["a", "b", "c"] and X.n_blocks == 4
    assert X.starts.dtype == np.int64
    assert_array_equal(X.starts, [0, 30, 60, 90, 100])
    blocks = list(X.blocks())
    assert all(block.flags.c_contiguous and block.dtype == dtype for block in blocks)
    assert_array_equal(np.concatenate(blocks), A)
    assert_array_equal(X[25:95], A[25:95])
    assert X[5:5].shape == (0, 3)
    assert_array_equal(X.y, np.arange(100) % 3)
    assert_array_equal(X.block_y(3), X.y[90:])
    assert "100 rows and 3 columns" in repr(X)
    again = pickle.loads(pickle.dumps(X))
    assert type(again) is ParquetTable and again.dtype == dtype
    assert_array_equal(again.block(1), A[30:60])


def test_a_group_is_turned_batch_by_batch(tmp_path):
    values = np.arange(150_000.0)  # pyarrow's batches have 65536 rows
    content = pa.table({"a": values, "y": values % 3, "b": -values})
    pq.write_table(content, tmp_path / "a.parquet", row_group_size=len(values))
    X = open_parquet(tmp_path / "a.parquet", target="y")
    assert_array_equal(X.block(0), np.stack([values, -values], axis=1))
    assert_array_equal(X.y, values % 3)


@pytest.mark.parametrize("other", [pa.float64(), pa.int32(), pa.int8()])
def test_one_column_that_is_not_float32_makes_the_values_float64(tmp_path, other):
    columns = {"a": pa.array([1, 2], pa.float32()), "b": pa.array([3, 4], other)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert open_parquet(tmp_path / "a.parquet").block(0).dtype == np.float64
    # also in another file of a folder
    (tmp_path / "both").mkdir()
    for name, kind in (("1", pa.float32()), ("2", other)):
        pq.write_table(pa.table({"a": pa.array([1, 2], kind)}), tmp_path / "both" / f"{name}.parquet")
    X = open_parquet(tmp_path / "both")
    assert X.dtype == np.float64 and X[:].dtype == np.float64
    assert open_parquet(tmp_path / "both" / "1.parquet").dtype == np.float32


def test_columns_and_types(path):
    A, _ = table()
    X = open_parquet(path, columns=["c", "y", "a"], dtype=np.float32)
    assert X.y is None and X.block_y(0) is None and X.dtype == np.float32
    assert_array_equal(X[:], np.column_stack([A[:, 2], np.arange(100) % 3, A[:, 0]]).astype(np.float32))


def test_kinds_of_columns(tmp_path):
    from decimal import Decimal

    columns = {
        "whole": pa.array([1, 2, 3], pa.int16()), "flag": [True, False, True],
        "price": pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("-1.00")]),
        "name": pa.array(["x", "y", "x"]).dictionary_encode(),
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    X = open_parquet(tmp_path / "a.parquet", target="name")
    assert_array_equal(X[:], [[1, 1, 1.5], [2, 0, 2.25], [3, 1, -1]])
    assert X.y.tolist() == ["x", "y", "x"]
    with pytest.raises(
        ValueError, match=r"a.parquet: column 'name' is of type .*name the numeric ones by `columns`"
    ):
        open_parquet(tmp_path / "a.parquet")


def test_a_folder(tmp_path):
    parts = []
    for k, name in enumerate(["b", "a"]):
        A, content = table(20, seed=k)
        # another order of columns than in the other file
        pq.write_table(
            content.select(["c", "y", "b", "a"] if k else content.column_names), tmp_path / f"{name}.parquet"
        )
        parts.append(A)
    (tmp_path / "_SUCCESS").write_text("")
    X = open_parquet(tmp_path, columns=["a", "b", "c"], target="y")
    assert_array_equal(X[:], np.concatenate([parts[1], parts[0]]))
    assert_array_equal(X.y, np.tile(np.arange(20) % 3, 2))
    pq.write_table(table()[1].drop_columns("b"), tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"c.parquet: has no column 'b'"):
        open_parquet(tmp_path, columns=["a", "b", "c"])


@pytest.mark.parametrize(
    "options, kind, message",
    [
        ({"columns": ["z"]}, ValueError, "has no column 'z'; it has"),
        ({"target": "z"}, ValueError, "has no column 'z'"),
        ({"columns": ["a", "y"], "target": "y"}, ValueError, "must not hold the target 'y'"),
        ({"columns": []}, ValueError, "no columns are left"),
        ({"columns": "a"}, TypeError, "sequence of names"),
        ({"dtype": np.int64}, ValueError, "dtype must be float32 or float64"),
    ],
)
def test_wrong_arguments(path, options, kind, message):
    with pytest.raises(kind, match=message):
        open_parquet(path, **options)


def test_nulls_are_named(tmp_path):
    content = pa.table({"a": [1.0, 2.0, None], "y": ["p", None, "q"]})
    pq.write_table(content, tmp_path / "a.parquet", row_group_size=2)
    X = open_parquet(tmp_path / "a.parquet", target="y")
    assert_array_equal(X.block(0), [[1], [2]])
    with pytest.raises(ValueError, match=r"a.parquet: column 'a' has nulls in row group 1"):
        X.block(1)
    with pytest.raises(ValueError, match=r"a.parquet: column 'y' has nulls in row group 0"):
        X.y  # noqa: B018


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.filterwarnings("error:X .*feature names")
def test_names_of_columns_are_those_of_features(path, tmp_path, make):
    """At the fit and in what is predicted for tables and by names; other names are refused."""
    A, _ = table()
    y = np.where(A[:, 0] > 0.5, 1, 0)
    X = open_parquet(path, target="y")
    model = make().fit(X, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    nameless = make().fit(list_of_blocks(A), y)
    assert not hasattr(nameless, "feature_names_in_")
    assert_array_equal(model.predict(X), nameless.predict(A))
    assert model.score(X, y) == pytest.approx(nameless.score(A, y))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="X has the feature 'c' where 'a' was at the fit: names must agree"):
        model.predict(open_parquet(path, columns=["c", "b", "a"]))


def list_of_blocks(A):
    return ListOfBlocks([A[i : i + 30] for i in range(0, len(A), 30)])


def test_damage_is_named(path, tmp_path):
    raw = path.read_bytes()
    with pytest.raises(FileNotFoundError, match=r"b\.parquet"):
        open_parquet(tmp_path / "b.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no file that ends in .parquet"):
        open_parquet(tmp_path / "empty")
    X = open_parquet(path)
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(ValueError, match=r"a.parquet: was changed since it was opened"):
        X.block(0)
    with pytest.raises(ValueError, match=r"a.parquet: damaged, or not in the Parquet format"):
        open_parquet(path)
    pq.write_table(table()[1], path, row_group_size=30, write_page_checksum=True)
    X = open_parquet(path)
    raw = bytearray(path.read_bytes())
    offset = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    raw[offset + 100] ^= 1
    path.write_bytes(raw)
    X.block(0)
    with pytest.raises(ValueError, match=r"a.parquet: damaged"):
        X.block(1)


def test_without_pyarrow(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "sparsekit\[parquet\]"'):
        open_parquet(path)
