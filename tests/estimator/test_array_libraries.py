"""Series of Polars and tensors of torch as arguments: as good as arrays of NumPy."""

import numpy as np
import pytest
from sklearn.base import is_regressor

import sparsekit as sk
from sparsekit import optimize
from sparsekit._messages import numbers

rng = np.random.default_rng(0)
X, weight = rng.standard_normal((40, 3)), rng.integers(1, 4, 40)
real, labels = X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(40), np.arange(40) % 3
shift, penalties = rng.standard_normal(40), np.array([0.1, 0.01])

WEIGHTED = [
    sk.L1LogisticOBA(), sk.LassoOBA(), sk.BoundedRegressor(), sk.BoundedClassifier(), sk.SoftmaxClassifier(),
    sk.ExtremeSoftmaxSGD(max_iter=2, random_state=0), sk.LPSparseMAPClassifier(alpha=1.0),
    sk.SoftmaxClassifierCV(alphas=[1.0], cv=2),
]  # fmt: skip

# what each call returns is a number or an array
CALLS = {
    "offset": lambda to: (
        sk.LassoOBA(0.1).fit(X, to(real), offset=to(shift)).predict(X, offset=to(shift)),
        sk.BoundedRegressor().fit(X, real, offset=to(shift)).coef_,
        sk.L1LogisticOBA().fit(X, labels == 1, offset=to(shift)).coef_,
    ),
    "penalty_weights": lambda to: (
        sk.LassoOBA(0.1, penalty_weights=to(np.array([0.0, 1.0, 2.0]))).fit(X, real).coef_
    ),
    "bounds": lambda to: sk.BoundedRegressor(bounds=(to(np.zeros(3)), None)).fit(X, real).coef_,
    "alphas": lambda to: sk.LassoOBACV(alphas=to(penalties), l1_ratio=to(penalties), cv=2).fit(X, real).coef_,
    "Cs": lambda to: sk.L1LogisticOBACV(Cs=to(penalties), cv=2).fit(X, labels).coef_,
    "penalties": lambda to: (
        sk.StabilitySelection(sk.LassoOBA(), penalties=to(penalties), n_pairs=1, random_state=0)
        .fit(X, real, sample_weight=to(weight))
        .stability_scores_
    ),
    "path": lambda to: sk.lasso_path(X, to(real), alphas=to(penalties), sample_weight=to(weight)).coefs,
    "x0": lambda to: (
        sk.minimize_nqn(lambda x: (float(x @ x), 2 * x), to(np.ones(3)), jac=True).x,
        sk.minimize_oba(optimize.LeastSquaresLoss(X, to(real), to(weight)), 0.1, to(np.ones(3))).x,
    ),
    "classes": lambda to: (
        sk.ExtremeSoftmaxSGD(random_state=0)
        .partial_fit(X, to(labels), classes=to(np.arange(4)), sample_weight=to(weight))
        .predict(X)
    ),
}  # fmt: skip


@pytest.fixture(params=["polars.Series", "torch.tensor"])
def to(request):
    library, _, name = request.param.partition(".")
    return getattr(pytest.importorskip(library, reason=f"{library} is not installed"), name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", WEIGHTED, ids=lambda model: type(model).__name__)
def test_sample_weight(model, to):
    y = real if is_regressor(model) else labels
    expected = model.fit(X, y, sample_weight=weight).score(X, y, sample_weight=weight)
    assert model.fit(X, to(y), sample_weight=to(weight)).score(X, to(y), sample_weight=to(weight)) == expected


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_arguments(call, to):
    found, expected = call(to), call(np.asarray)
    np.testing.assert_equal(found, expected)


def test_what_numpy_cannot_read_is_named():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(TypeError, match=r"(?s)^sample_weight must be an array that NumPy can read; .*detach"):
        sk.LassoOBA().fit(X, real, sample_weight=torch.ones(40, requires_grad=True))
    with pytest.raises(ValueError, match=r"^offset must hold real numbers; got complex ones"):
        numbers(torch.ones(2, dtype=torch.complex64), "offset")
