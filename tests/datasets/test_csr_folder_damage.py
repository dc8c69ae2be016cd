"""Folders of CSR blocks: a file that is not as it was is named, and so is what is wrong with a manifest."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sparsekit._cython.datasets._row_files import first_bad_row
from sparsekit.datasets import open_csr, write_csr

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")


def change(path, at, value):
    raw = bytearray(path.read_bytes())
    raw[at] ^= value
    path.write_bytes(raw)


@pytest.mark.parametrize("part", ["indptr", "indices", "data", "y"])
@pytest.mark.parametrize("how", ["cut", "longer", "changed", "header", "gone"])
def test_a_file_that_is_not_as_it_was_is_named(folder, tmp_path, part, how):
    path = tmp_path / "folder" / f"000002.{part}.npy"
    opened = open_csr(folder.path)
    raw = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how in ("cut", "longer"):
        path.write_bytes(raw[:-3] if how == "cut" else raw + b"12345678")
        with pytest.raises(ValueError, match=rf"000002\.{part}\.npy: has \d+ bytes, and not {len(raw)}"):
            open_csr(folder.path)
    else:
        change(path, -5 if how == "changed" else 20, 1)
    kind = FileNotFoundError if how == "gone" else ValueError
    read = opened.block_y if part == "y" else opened.block
    for _ in range(2):  # nothing is taken for checked
        with pytest.raises(kind, match=rf"000002\.{part}\.npy"):
            read(2)
    assert read(1) is not None
    with pytest.raises(kind, match=rf"000002\.{part}\.npy"):
        list(opened.blocks()) if part != "y" else opened.y


def test_rows_that_are_none_are_found_where_sums_agree(folder, tmp_path):
    """Of a folder that another program wrote."""
    import zlib

    manifest_at = tmp_path / "folder" / "manifest.json"
    manifest = json.loads(manifest_at.read_text())
    record = manifest["blocks"][1]["files"]["indices"]
    path = tmp_path / "folder" / "000001.indices.npy"
    change(path, 128, 0x40)
    record["crc32"] = zlib.crc32(path.read_bytes())
    manifest_at.write_text(json.dumps(manifest))
    opened = open_csr(folder.path)
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"000001.indices.npy \(with 000001.indptr.npy\): row \d+ of the block"
        ):
            opened.block(1)


@pytest.mark.parametrize(
    "content, message",
    [
        ("{", "manifest.json: damaged"),
        ("[1]", "not the manifest"),
        ('{"format": "sparsekit CSR folder", "version": 2}', "has version 2"),
        (lambda m: m.pop("shape"), "no shape"),
        (lambda m: m.update(dtype="object"), "no dtype"),
        (lambda m: m.update(y="object"), "type of y"),
        (lambda m: m.update(shape=[299, 40]), "do not add up"),
        (lambda m: m["blocks"][3].update(rows=-1), "entry of block 3"),
        (lambda m: m["blocks"][3]["files"].pop("data"), "entry of block 3"),
    ],
)
def test_a_damaged_manifest(folder, tmp_path, content, message):
    path = tmp_path / "folder" / "manifest.json"
    if callable(content):
        manifest = json.loads(path.read_text())
        content(manifest)
        content = json.dumps(manifest)
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        open_csr(folder.path)


def test_no_folder_and_no_manifest(tmp_path):
    with pytest.raises(FileNotFoundError, match="write_csr and convert_svmlight make such folders"):
        open_csr(tmp_path)
    (tmp_path / "progress.jsonl").write_text("")
    with pytest.raises(ValueError, match="was not finished"):
        open_csr(tmp_path)


@pytest.mark.parametrize("first", [0, 1])
def test_columns_and_labels_next_to_the_last_are_refused(tmp_path, first):
    """Files whose sums agree, under a manifest that says one less."""
    X = sp.csr_array(np.eye(5)[first:])
    write_csr(tmp_path / "folder", X, sp.csr_array(np.eye(5, dtype=np.int8)[first:]))
    manifest_at = tmp_path / "folder" / "manifest.json"
    manifest = json.loads(manifest_at.read_text())
    rows, columns = 5 - first, 5 - first

    def opened(**changes):
        changed = {**manifest, "first_index": first, "shape": [rows, columns], **changes}
        manifest_at.write_text(json.dumps(changed))
        return open_csr(tmp_path / "folder")

    assert_array_equal(opened().block(0).toarray(), np.eye(columns))
    assert opened().block_y(0).shape == (rows, 5)
    said = "row {} of the block is none; its columns must increase and be among the {} that"
    with pytest.raises(ValueError, match=said.format(rows - 1, columns - 1)):
        opened(shape=[rows, columns - 1]).block(0)
    with pytest.raises(ValueError, match=r"y_indices\.npy .*" + said.format(rows - 1, 4)):
        opened(n_labels=4).block_y(0)
    if first == 0:
        with pytest.raises(ValueError, match=said.format(0, 5)):
            opened(first_index=1).block(0)


@settings(max_examples=200)
@given(st.lists(st.integers(-1, 6), min_size=1, max_size=6), st.lists(st.integers(-1, 5), max_size=6))
def test_first_bad_row(indptr, indices):
    n = len(indptr) - 1
    expected = -1
    if indptr[0] != 0 or indptr[-1] != len(indices):
        expected = 0
    else:
        for i in range(n):
            row = indices[indptr[i] : indptr[i + 1]]
            is_valid = 0 <= indptr[i] <= indptr[i + 1] <= len(indices)
            if not is_valid or any(not 1 <= j <= 4 for j in row) or sorted(set(row)) != row:
                expected = i
                break
    assert first_bad_row(np.array(indptr, np.int32), np.array(indices, np.int32), 1, 4) == expected
