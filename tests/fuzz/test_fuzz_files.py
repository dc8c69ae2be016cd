"""Files that were damaged or made up: data, or an error that names the file."""

import contextlib
import os
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from dataset_files import COMPRESS
from fuzz_budget import fuzz
from fuzz_outcomes import Refused, clear
from hypothesis import strategies as st

from sparsekit import datasets
from sparsekit._compare import cli
from sparsekit._compare import io as compare_io
from sparsekit._compare.tables import DataError

SVMLIGHT = b"# three rows\n1 1:0.5 3:-2 # a comment\n-1 2:1e3\n+1 qid:3 1:0.25 2:1 4:7\n-1 1:1\n1 3:2\n" * 3
XC = b"4 6 3\n0,2 0:1 5:0.5\n1 1:2\n 2:1e-3 3:1\n2 4:-1\n"
CSV = b'a,b,target\n1,x,yes\n2.5,y,no\n,x,yes\n4,"q,r",no\n5,x,yes\n6,y,no\n7,x,yes\n8,y,no\n'
TOKENS = [
    b"", b"\n", b"\r", b" ", b"\t", b",", b":", b"'", b'"', b"{", b"}", b"%", b"#", b"\0",
    b"\xff\xfe", b"?", b"nan", b"inf", b"-1", b"1e999", b"9" * 30, b"9" * 5000, b"2147483648",
    b"0x1", b"1_000", b"-", b"e", b"\xc2\xb2", b"qid:1",
    b"1:1 1:1", b"0:1", b"500000001:1",
]  # fmt: skip
NUMBERS = [
    b"0", b"-1", b"1e30", b"4294967296", b"99999999999999999999999999", b"null", b"true", b'"x"',
    b"[]", b"{}",
]  # fmt: skip
LOADERS = {
    "m.svm": (datasets.load_svmlight, SVMLIGHT),
    "m.txt": (datasets.load_xc, XC),
    "m.csv": (compare_io.read_problem, CSV),
    "m.libsvm": (compare_io.read_problem, SVMLIGHT),
}


def mutated(draw, text, tokens=TOKENS):
    """Bytes changed, cut out, doubled, or replaced by what is hard to read."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = min(at + draw(st.sampled_from([0, 1, 2, 10, 10**6])), len(text))
        what = draw(st.sampled_from(["token", "flip", "double"]))
        if what == "flip" and at < len(text):
            text = text[:at] + bytes([text[at] ^ draw(st.integers(1, 255))]) + text[at + 1 :]
        elif what == "double":
            text = text[:end] + text[at:end] + text[end:]
        else:
            text = text[:at] + draw(st.sampled_from(tokens)) + text[end:]
    return text


def reads(path, read, *more):
    """What `read` makes of the file, or None where it is refused with a message that names it."""
    try:
        with clear(*more):
            return read(path)
    except Refused as refused:
        assert os.path.basename(path) in str(refused.__cause__), refused.__cause__
    return None


@pytest.mark.parametrize("name", list(LOADERS))
@fuzz(share=15)
def test_texts(draw, name, tmp_path):
    read, text = LOADERS[name]
    suffix = draw(st.sampled_from(list(COMPRESS)))
    if suffix and draw(st.booleans()):
        text = mutated(draw, COMPRESS[suffix](text))
    else:
        text = COMPRESS[suffix](mutated(draw, text))
    path = tmp_path / (name + suffix)
    path.write_bytes(text)
    found = reads(path, read, *([DataError] if read is compare_io.read_problem else []))
    if isinstance(found, tuple):
        X, y = found[:2]
        values = X.data if sp.issparse(X) else np.asarray(X)
        assert X.shape[0] == np.shape(y)[0]
        assert np.isfinite(values).all()
        if sp.issparse(X) and X.nnz:
            assert X.indices.min() >= 0 and X.indices.max() < X.shape[1]


def parts():
    """Arrays of a CSR matrix and its targets, by the names that an archive has for them."""
    X = sp.csr_array(np.arange(12.0).reshape(4, 3))
    shape, y = np.array(X.shape), np.array([0, 1, 0, 1])
    return {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": shape, "y": y}


@fuzz(share=15)
def test_archives(draw, tmp_path):
    """Whole .npz files changed, and such as hold arrays that do not go together."""
    path, arrays = tmp_path / "m.npz", parts()
    if draw(st.booleans()):
        np.savez(path, **arrays)
        path.write_bytes(mutated(draw, path.read_bytes()))
    else:
        name = draw(st.sampled_from(sorted(arrays)))
        wrong = [
            arrays[name][:-1],
            arrays[name] - 1,
            arrays[name] * 10**9,
            arrays[name].astype(float) / 0.3,
            arrays[name].astype(str),
            arrays[name].reshape(1, -1),
            np.array(3),
            arrays[name] + 0j,
            arrays[name].astype(object),
        ]
        if name in ("X_indices", "X_indptr") and draw(st.booleans()):
            arrays[name] = arrays[name].astype(draw(st.sampled_from([np.int32, np.int64])))
            changed(draw, arrays[name])
        else:
            arrays[name] = draw(st.sampled_from(wrong))
        np.savez(path, **arrays)
    reads(path, compare_io.read_problem, DataError)


def changed(draw, numbers):
    """Some of an array of indices or pointers made wrong, in place; their steps may overflow."""
    for _ in range(draw(st.integers(1, 3))):
        wrong = st.sampled_from([2 * 10**9, -(10**9), -1, 2**31 - 1, -(2**31), 6, 7, 0, 1])
        numbers[draw(st.integers(0, len(numbers) - 1))] = draw(wrong)


def forge(draw, whole, file):
    """Numbers changed in an array of a block, which has its own sums."""
    with np.load(whole / file.name) as block:
        arrays = dict(block)
    changed(draw, arrays[draw(st.sampled_from(["indptr", "indices"]))])
    np.savez(file, **arrays)


@fuzz(share=15)
def test_folders(draw, tmp_path):
    """A folder of CSR blocks with one of its files changed."""
    whole, folder = tmp_path / "whole", tmp_path / "folder"
    if not whole.exists():
        X = sp.random_array((20, 6), density=0.4, rng=np.random.default_rng(0), format="csr")
        datasets.write_csr(whole, X, y=np.arange(20) % 3, block_bytes=200)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    file = folder / draw(st.sampled_from(sorted(os.listdir(whole)) + 3 * ["manifest.json"]))
    file.write_bytes(mutated(draw, file.read_bytes(), NUMBERS if file.suffix == ".json" else TOKENS))

    if file.suffix == ".npz" and draw(st.booleans()):
        forge(draw, whole, file)

    def read(path):
        X = datasets.open_csr(path)
        return [(X.block(i), X.block_y(i)) for i in range(X.n_blocks)], X.shape, X[1:3]

    blocks = reads(folder, read)
    for block, y in blocks[0] if blocks else []:
        assert block.shape[0] == len(y) and np.isfinite(block.data).all()
        assert not block.nnz or 0 <= block.indices.min() <= block.indices.max() < block.shape[1]


@fuzz(share=10)
def test_parquet(draw, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "m.parquet"
    columns = {
        "a": [1.0, 2.0, 3.0, 4.0],
        "b": [1, 2, None, 4] if draw(st.booleans()) else [1, 2, 3, 4],
        "c": draw(st.sampled_from([["x", "y", "x", "y"], [0, 1, 0, 1], [True, False, True, False]])),
    }
    parquet.write_table(pyarrow.table(columns), path, row_group_size=2)
    if draw(st.booleans()):
        path.write_bytes(mutated(draw, path.read_bytes()))

    def read(path):
        X = datasets.open_parquet(path, target="c")
        return [(X.block(i), X.block_y(i)) for i in range(X.n_blocks)]

    reads(path, read)
    reads(path, compare_io.read_problem, DataError)


@fuzz(share=2)
def test_compare(draw, tmp_path, capsys):
    """The whole command: a table, or one line that says what is wrong."""
    name = draw(st.sampled_from(["m.csv", "m.libsvm"]))
    path = tmp_path / name
    path.write_bytes(mutated(draw, LOADERS[name][1]))
    options = ["--peers", "", "--C", draw(st.sampled_from(["1", "1e-6,1e3"])), "--max-time", "5"]
    with contextlib.suppress(Refused), clear():
        status = cli.main(["compare", str(path), *options])
        said = capsys.readouterr()
        assert status in (0, 1), said.err
        assert (name in said.err and "Traceback" not in said.err) if status else "L1LogisticOBA" in said.out
