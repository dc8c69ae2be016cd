"""Folders of CSR blocks: a file that is not as it was is named, and so is what is wrong with a manifest."""

import io
import json

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from sparsekit.datasets import open_csr, write_csr


def change(path, at, value):
    raw = bytearray(path.read_bytes())
    raw[at] ^= value
    path.write_bytes(raw)


def forge(path, **arrays):
    """A block whose sums agree, with other arrays."""
    with np.load(path) as file:
        found = dict(file)
    np.savez(path, **(found | arrays))


@pytest.mark.parametrize("part", ["indptr", "indices", "data", "y"])
def test_a_changed_array_is_named(folder, tmp_path, part):
    path = tmp_path / "folder" / "000002.csr.npz"
    opened = open_csr(folder.path)
    raw = path.read_bytes()
    change(path, raw.index(f"{part}.npy".encode()) + 200, 1)
    read = opened.block_y if part == "y" else opened.block
    with pytest.raises(ValueError, match=r"000002\.csr\.npz: was changed or damaged"):
        read(2)
    assert read(1) is not None
    with pytest.raises(ValueError, match=r"000002\.csr\.npz"):
        list(opened.blocks()) if part != "y" else opened.y


@pytest.mark.parametrize("how", ["cut", "empty", "text", "array", "gone"])
def test_a_file_that_is_not_as_it_was_is_named(folder, tmp_path, how):
    path = tmp_path / "folder" / "000002.csr.npz"
    raw = path.read_bytes()
    path.unlink()
    array = io.BytesIO()
    np.save(array, np.zeros(3))
    other = {"cut": raw[:-3], "empty": b"", "text": b"text", "array": array.getvalue()}
    if how != "gone":
        path.write_bytes(other[how])
    with pytest.raises(FileNotFoundError if how == "gone" else ValueError, match=r"000002\.csr\.npz"):
        open_csr(folder.path).block(2)


@pytest.mark.parametrize(
    "arrays, said",
    [
        ({"indices": [0, 2**30]}, "row 0 has the column index 1073741824"),
        ({"indices": [3, 1]}, "do not increase"),
        ({"indices": [3, 3]}, "do not increase"),
        ({"indices": [-1, 2]}, "column index -1"),
        ({"data": [1.0]}, ""),
        ({"indptr": [0, 2]}, ""),
        ({"indptr": [0, 3, 2]}, ""),
    ],
)
def test_rows_that_are_none_are_found_where_sums_agree(tmp_path, arrays, said):
    """Of a folder that another program wrote."""
    folder = write_csr(tmp_path / "folder", np.array([[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    path = tmp_path / "folder" / "000000.csr.npz"
    arrays = {
        name: np.array(values, np.float64 if name == "data" else np.int32) for name, values in arrays.items()
    }
    forge(path, **arrays)
    with pytest.raises(ValueError, match=rf"000000.csr.npz: .*{said}"):
        open_csr(folder.path).block(0)


@pytest.mark.parametrize(
    "name, dtype",
    [("data", "float64"), ("data", "int8"), ("data", "U1"), ("indices", "float64"), ("indices", "uint8")]
    + [("indices", "U1"), ("indptr", "U1"), ("y_indices", "U1"), ("y_indptr", "S1")],
)
def test_arrays_of_other_types_are_refused(tmp_path, name, dtype):
    """The first index is 1: it is subtracted from the indices."""
    folder = tmp_path / "folder"
    write_csr(folder, np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0, 1], [0, 0]]), dtype=np.float32)
    manifest_at = folder / "manifest.json"
    manifest_at.write_text(json.dumps({**json.loads(manifest_at.read_text()), "first_index": 1}))
    forge(folder / "000000.csr.npz", **{name: np.ones(3 if name.endswith("indptr") else 1, dtype=dtype)})
    opened = open_csr(folder)
    read = opened.block_y if name.startswith("y") else opened.block
    with pytest.raises(ValueError, match=r"000000.csr.npz: "):
        read(0)


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_of_the_manifest_are_those_of_the_block(tmp_path, rows):
    write_csr(tmp_path / "folder", np.eye(2))
    manifest_at = tmp_path / "folder" / "manifest.json"
    manifest = json.loads(manifest_at.read_text())
    manifest["blocks"][0]["rows"] = rows
    manifest_at.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=r"000000.csr.npz: index pointer size"):
        open_csr(tmp_path / "folder").block(0)


@pytest.mark.parametrize("y", [np.arange(3.0), np.arange(2), np.array([[0.0], [1.0]])])
def test_targets_that_are_none_are_found(tmp_path, y):
    folder = write_csr(tmp_path / "folder", np.eye(2), [0.5, 1.0])
    forge(tmp_path / "folder" / "000000.csr.npz", y=y)
    with pytest.raises(ValueError, match=r"000000.csr.npz: y is "):
        open_csr(folder.path).block_y(0)


@pytest.mark.parametrize(
    "content, message",
    [
        ("{", "manifest.json: damaged"),
        ("[" * 10**5, "manifest.json: damaged"),
        ("[1]", "not the manifest"),
        ('{"schema": "sparsekit CSR folder", "version": 9}', "not the manifest .* of version 2"),
        (lambda m: m.pop("n_features"), "manifest.json: damaged"),
        (lambda m: m.update(dtype="object"), "manifest.json: damaged"),
        (lambda m: m.update(y="object"), "manifest.json: damaged"),
        (lambda m: m["blocks"][3].update(rows=-1), "manifest.json: damaged"),
        (lambda m: m["blocks"][3].pop("nnz"), "manifest.json: damaged"),
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
    for name in ("some.txt", "000000.csr.npz"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(FileNotFoundError, match="write_csr and convert_svmlight make such folders"):
            open_csr(tmp_path)


@pytest.mark.parametrize("first", [0, 1])
def test_columns_and_labels_next_to_the_last_are_refused(tmp_path, first):
    """Files whose sums agree, under a manifest that says one less."""
    X = sp.csr_array(np.eye(5)[first:])
    write_csr(tmp_path / "folder", X, sp.csr_array(np.eye(5, dtype=np.int8)[first:]))
    manifest_at = tmp_path / "folder" / "manifest.json"
    manifest = json.loads(manifest_at.read_text())
    n = 5 - first

    def opened(**changes):
        manifest_at.write_text(json.dumps({**manifest, "first_index": first, "n_features": n, **changes}))
        return open_csr(tmp_path / "folder")

    assert_array_equal(opened().block(0).toarray(), np.eye(n))
    assert opened().block_y(0).shape == (n, 5)
    with pytest.raises(ValueError, match=rf"row {n - 1} has the column index {n - 1}"):
        opened(n_features=n - 1).block(0)
    with pytest.raises(ValueError, match=rf"csr.npz: .*row {n - 1} has the column index 4"):
        opened(n_labels=4).block_y(0)
    if first == 0:
        with pytest.raises(ValueError, match="row 0 has the column index -1"):
            opened(first_index=1).block(0)
