"""Columns and rows that are brought into this process, and the memory that they may take."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from row_data import in_blocks, labels, text

from sparsekit import SparsemaxClassifierCV
from sparsekit._row_blocks import gather
from sparsekit._row_blocks.blocks import LocalBlocks
from sparsekit._row_blocks.census import make_census

X, SCORES = text(p=40)


def counted(kind):
    matrix = X if kind == "sparse" else X.toarray()
    blocks = LocalBlocks(in_blocks(matrix))
    return blocks, make_census(blocks)


def allow(monkeypatch, size):
    monkeypatch.setenv("SPARSEKIT_MEMORY", repr(size / 2**30))


def dense(part):
    return part.toarray() if sp.issparse(part) else part


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_columns_are_forgotten_without_memory(kind, monkeypatch):
    blocks, census = counted(kind)
    found = gather.GatheredColumns(blocks, census)
    first, second, few = np.arange(0, 12), np.arange(8, 20), np.array([3, 9])
    n_bytes = max(census.bytes_of(first), census.bytes_of(second))
    assert census.bytes_of(first) == (dense(X)[:, :12] != 0).sum() * 12 if kind == "sparse" else 500 * 12 * 8
    allow(monkeypatch, n_bytes)
    rounds = [blocks.n_rounds]
    for columns in (first, few, second, first, few):
        part = found.matrix(columns)
        assert_array_equal(dense(part), dense(X)[:, columns])
        assert part.format == "csc" if kind == "sparse" else part.flags.f_contiguous
        assert census.bytes_of(found.stored) <= n_bytes and len(set(found.stored)) == len(found.stored)
        rounds.append(blocks.n_rounds)
    assert np.diff(rounds).tolist() == [1, 0, 1, 1, 0]
    # those of both stay
    assert_array_equal(np.sort(found.stored), first)
    found.matrix(second)
    assert_array_equal(np.sort(found.stored), second)
    allow(monkeypatch, 2 * n_bytes)
    found.matrix(first)
    assert_array_equal(np.sort(found.stored), np.arange(20))


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_too_many_columns_are_refused_before_they_come(kind, monkeypatch):
    blocks, census = counted(kind)
    found = gather.GatheredColumns(blocks, census)
    columns = np.arange(10)
    before = blocks.n_rounds
    allow(monkeypatch, census.bytes_of(columns) - 1)
    with pytest.raises(MemoryError, match=r"the 10 columns that the model may need take .* GiB in this"):
        found.matrix(columns)
    assert blocks.n_rounds == before
    allow(monkeypatch, census.bytes_of(columns))
    assert_array_equal(dense(found.matrix(columns)), dense(X)[:, :10])


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_all_rows_come_where_they_fit(kind, monkeypatch):
    blocks, census = counted(kind)
    size = 12 * X.nnz if kind == "sparse" else 8 * 500 * 40
    allow(monkeypatch, size)
    found = gather.gather_rows(blocks, census)
    assert_array_equal(dense(found), dense(X))
    assert found.format == "csr" if kind == "sparse" else found.flags.c_contiguous
    allow(monkeypatch, size - 1)
    before = blocks.n_rounds
    assert gather.gather_rows(blocks, census) is None
    with pytest.raises(MemoryError, match=r"Mine needs X in memory; it takes .* allowed: set SPARSEKIT_MEM"):
        gather.gather_rows(blocks, census, "Mine")
    assert blocks.n_rounds == before
    with pytest.raises(MemoryError, match="SparsemaxClassifierCV needs X in memory"):
        SparsemaxClassifierCV().fit(in_blocks(dense(X) if kind == "dense" else X), labels(SCORES))


def test_the_limit_is_half_of_the_memory(monkeypatch):
    monkeypatch.delenv("SPARSEKIT_MEMORY", raising=False)
    assert 2**28 < gather.memory_limit() < 2**45
    allow(monkeypatch, 3 * 2**30)
    assert gather.memory_limit() == 3 * 2**30
