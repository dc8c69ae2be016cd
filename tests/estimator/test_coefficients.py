"""`coefficients`: tables of the coefficients of linear models."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import sparsekit as sk


def test_every_linear_model_has_one_once_it_is_fitted():
    linear = [one for name in sk.__all__ if hasattr(one := getattr(sk, name), "coefficients")]
    assert len(linear) >= 15
    for kind in linear:
        with pytest.raises(NotFittedError):
            kind().coefficients()


def test_tables_of_coefficients():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X["<noise> & co"] = np.random.default_rng(0).standard_normal(len(y))
    lasso = sk.LassoOBA(0.1).fit(X, y)
    table = lasso.coefficients()
    assert isinstance(table, pd.DataFrame) and table.shape == (5, 1) and table.index.name == "feature"
    magnitudes = table["coefficient"].abs().to_numpy()
    assert (np.diff(magnitudes) <= 0).all() and 0 < np.count_nonzero(magnitudes) < 5
    for name, value in table["coefficient"].items():
        assert value == lasso.coef_[list(X.columns).index(name)]
    zeros = [name for name, value in zip(X.columns, lasso.coef_) if value == 0]
    assert list(table.index[-len(zeros) :]) == zeros  # as they stand in X
    model = sk.L1LogisticOBA(C=0.1).fit(X, np.array(["a", "b", "c"])[y])
    table = model.coefficients()
    assert list(table.columns) == ["a", "b", "c"]
    assert (np.diff(table.abs().max(axis=1)) <= 0).all()
    np.testing.assert_array_equal(table.loc[list(X.columns)].to_numpy(), model.coef_.T)
    sparse = model.sparsify().coefficients()
    pd.testing.assert_frame_equal(sparse.sparse.to_dense(), table)
    plain = sk.L1LogisticOBA().fit(X.to_numpy(), y == 0).coefficients()
    assert set(plain.index) == {f"x{j}" for j in range(5)} and list(plain.columns) == ["coefficient"]
    hashed = sk.ExtremeSoftmaxSGD(hash_bits=8, max_iter=1, tol=0.9).fit(X, y)
    with pytest.raises(ValueError, match="no coefficients by feature: its weights are hashed"):
        hashed.coefficients()
