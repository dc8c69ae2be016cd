"""Folds of the classifiers' cross-validation where none are named: even in the labels of sorted rows too."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold, StratifiedKFold

from sparsekit import LPSparseMAPClassifierCV, SparsemaxClassifierCV
from sparsekit._estimator.cross_validation import splitter_of


def parts_of(splitter, y):
    return [test.tolist() for _, test in splitter.split(np.zeros((y.shape[0], 1)), y)]


def test_labels_and_named_folds_are_scikit_learns():
    y = np.repeat(["a", "b", "c"], [3, 20, 4])
    assert parts_of(splitter_of(None, y, False), y) == parts_of(StratifiedKFold(5), y)
    few = np.array([0, 1, 1, 1])
    assert len(parts_of(splitter_of(None, few, False), few)) == 3
    Y = np.eye(4)[np.repeat(np.arange(4), 10)]
    assert parts_of(splitter_of(4, Y, True), Y) == parts_of(KFold(4), Y)


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_matrix, sp.coo_array])
def test_each_fold_has_its_share_of_the_rarest_labels_of_sorted_rows(wrap):
    Y = np.zeros((120, 5), dtype=int)
    Y[:70, 0] = Y[70:100, 1] = Y[60:75, 2] = 1  # a label alone, with another, and 20 rows without any
    Y[5:8, 4] = 1  # fewer than there are folds
    folds = parts_of(splitter_of(None, wrap(Y), True), Y)
    assert sorted(i for fold in folds for i in fold) == list(range(120))
    for fold in folds:
        share = Y[fold].sum(axis=0)
        assert 13 <= share[0] <= 15 and share[1] == 6 and share[2] == 3 and share[4] <= 1
        assert (~Y[fold].any(axis=1)).sum() == 4


@pytest.mark.parametrize("n", [2, 3, 6, 9])
def test_few_rows(n):
    Y = np.eye(3)[np.arange(n) % 3]
    folds = parts_of(splitter_of(None, Y, True), Y)
    assert len(folds) == min(n, 5) and sorted(i for fold in folds for i in fold) == list(range(n))


@pytest.mark.parametrize("model", [LPSparseMAPClassifierCV, SparsemaxClassifierCV])
def test_sorted_rows_are_scored_as_shuffled_ones(model):
    rng = np.random.default_rng(0)
    Y = np.eye(5, dtype=int)[np.repeat(np.arange(5), 12)]
    X = 2.0 * Y + rng.normal(size=Y.shape)
    order = rng.permutation(len(Y))
    scores = [model([0.1]).fit(*rows).scores_.mean() for rows in ((X, Y), (X[order], Y[order]))]
    assert scores[0] == pytest.approx(scores[1], abs=0.05)
    # without, every fold asks for the one label that its fit has not seen
    assert model([0.1], cv=KFold(5)).fit(X, Y).scores_.mean() < scores[0] - 0.2


@pytest.mark.parametrize("Y", [np.ones((7, 2)), np.zeros((7, 2)), np.full((7, 3), 1 / 3), np.zeros((7, 0))])
def test_rows_that_are_all_of_a_kind_are_cut_as_they_come(Y):
    assert parts_of(splitter_of(None, Y, True), Y) == parts_of(KFold(5), Y)
