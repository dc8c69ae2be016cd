"""Which public L1 thing has which facility: a table of tests, and of what is refused on purpose.

`THINGS` are the columns; a test that takes ``thing`` is a row, and `REFUSED` has the cells that are left out
on purpose. What only one of them has, or what needs more than a small problem, is tested beside it.
"""

import functools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import reference_oba as reference
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsekit import (
    L1LogisticOBA,
    L1LogisticOBACV,
    LassoOBA,
    LassoOBACV,
    StabilitySelection,
    l1_logistic_path,
    lasso_path,
    minimize_oba,
)
from sparsekit.optimize import LeastSquaresLoss, LogisticLoss

TOL = 1e-9
C, ALPHA = 0.5, 0.08
N, P = 60, 7
NAMES = [f"f{j}" for j in range(P)]
# folds of fixed rows, so that rows that weigh nothing or stand there twice leave them as they are
FOLDS = [(np.flatnonzero(np.arange(N) % 3 != k), np.flatnonzero(np.arange(N) % 3 == k)) for k in range(3)]

rng = np.random.default_rng(7)
X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.7)
SIGNAL = 1.5 * X[:, 0] - X[:, 1] + 0.7 * X[:, 2]
NUMBERS = SIGNAL + 0.5 * rng.standard_normal(N) + 2.0
TWO = (SIGNAL + rng.logistic(size=N) > 0.3).astype(int)
THREE = (1.5 * X[:, :3] + rng.gumbel(size=(N, 3))).argmax(axis=1)
OFFSET = rng.standard_normal(N)
COUNTS = rng.integers(1, 4, N).astype(float)
UNEVEN = np.linspace(0.3, 2.0, P)


class Estimator:
    """A class whose fit is one problem: coefficients (n_outputs, p), intercepts, objective, gap."""

    def __init__(self, model, y):
        self.model, self.y = model, y

    def fit(self, X=X, y=None, *, sample_weight=None, offset=None, **parameters):
        model = clone(self.model).set_params(**parameters)
        model.fit(X, self.y if y is None else y, sample_weight=sample_weight, offset=offset)
        gap = getattr(model, "dual_gap_", None)
        return np.atleast_2d(model.coef_), np.ravel(model.intercept_), getattr(model, "objective_", None), gap


class Path:
    """A path, of which one point is looked at."""

    def __init__(self, path, y, **penalty):
        self.path, self.y, self.penalty = path, y, penalty

    def fit(self, X=X, y=None, **parameters):
        given = {**self.penalty, "tol": TOL, **parameters}
        found = self.path(X, self.y if y is None else y, **given)
        return (
            np.atleast_2d(found.coef(-1)), np.atleast_1d(found.intercepts.T[-1]),
            found.objectives[-1], found.dual_gaps[-1],
        )  # fmt: skip


class Selection:
    """Frequencies, which have neither intercept nor gap; and the penalties."""

    def __init__(self, model, y):
        self.model, self.y = model, y

    def fit(self, X=X, y=None, *, sample_weight=None, offset=None, n_jobs=None, **parameters):
        model = StabilitySelection(
            clone(self.model).set_params(**parameters), n_pairs=3, penalties=6, random_state=0,
            max_false=None, n_jobs=n_jobs,
        )  # fmt: skip
        model.fit(X, self.y if y is None else y, sample_weight=sample_weight, offset=offset)
        return model.stability_paths_, model.penalties_, None, None


THINGS = {
    "L1LogisticOBA": Estimator(L1LogisticOBA(C, tol=TOL), TWO),
    "L1LogisticOBA, 3 classes": Estimator(L1LogisticOBA(C, tol=TOL), THREE),
    "L1LogisticOBACV": Estimator(L1LogisticOBACV([C], tol=TOL, cv=FOLDS, scoring="neg_log_loss"), TWO),
    "L1LogisticOBACV, 3 classes": Estimator(
        L1LogisticOBACV([C], tol=TOL, cv=FOLDS, scoring="neg_log_loss"), THREE
    ),
    "l1_logistic_path": Path(l1_logistic_path, TWO, Cs=[0.1, C]),
    "l1_logistic_path, 3 classes": Path(l1_logistic_path, THREE, Cs=[0.1, C]),
    "LassoOBA": Estimator(LassoOBA(ALPHA, tol=TOL), NUMBERS),
    "LassoOBACV": Estimator(LassoOBACV([ALPHA], tol=TOL, cv=FOLDS), NUMBERS),
    "lasso_path": Path(lasso_path, NUMBERS, alphas=[ALPHA, 1.0]),
    "StabilitySelection(L1LogisticOBA)": Selection(L1LogisticOBA(tol=TOL), TWO),
    "StabilitySelection(LassoOBA)": Selection(LassoOBA(tol=TOL), NUMBERS),
}
FITS = [name for name in THINGS if "Stability" not in name]
ESTIMATORS = [name for name in THINGS if isinstance(THINGS[name], Estimator)]

# cells that are empty on purpose: what is called, the message, and the reason
REFUSED = {
    "positive, classes": (
        lambda: L1LogisticOBA(positive=True), TypeError, "positive",
        "a sign of each class's coefficients has no meaning where classes may be renamed: BoundedClassifier",
    ),
    "positive, L-BFGS": (
        lambda: LassoOBA(positive=True, hessian="lbfgs").fit(X, NUMBERS), ValueError,
        "positive must be False where hessian is 'lbfgs'", "coefficients >= 0 are found without a model",
    ),
    "infinite penalty_weights": (
        lambda: LassoOBA(penalty_weights=[np.inf] + [1.0] * (P - 1)).fit(X, NUMBERS), ValueError,
        "penalty_weights contains infinity", "leave the column out, as `coming_from` says for glmnet",
    ),
    "infinite penalty_weights by name": (
        lambda: L1LogisticOBA(penalty_weights={"f0": np.inf}).fit(frame(), TWO), ValueError,
        r"penalty_weights\['f0'\] must be a finite number", "leave the column out",
    ),
    "callback, CV": (
        lambda: LassoOBACV(callback=print), TypeError, "callback",
        "many fits in threads would be told apart by nothing: scikit-learn's callbacks say which fold it is",
    ),
    "several l1_ratio, one fit": (
        lambda: LassoOBA(l1_ratio=[0.5, 1.0]).fit(X, NUMBERS), ValueError, "'l1_ratio' parameter of LassoOBA",
        "only a CV class can choose",
    ),
    "several l1_ratio, path": (
        lambda: l1_logistic_path(X, TWO, l1_ratio=[0.5, 1.0]), ValueError, "'l1_ratio' parameter of l1_log",
        "a path has one penalty at a point",
    ),
    "ridge, stability": (
        lambda: StabilitySelection(LassoOBA(l1_ratio=0.0)).fit(X, NUMBERS), ValueError,
        "l1_ratio of LassoOBA must be above 0", "a ridge selects every feature",
    ),
    "one offset a row, 3 classes": (
        lambda: L1LogisticOBA().fit(X, THREE, offset=OFFSET), ValueError, "a column a class",
        "the same for all classes would change no probability",
    ),
    "to_sklearn with an offset": (
        lambda: LassoOBA().fit(X, NUMBERS, offset=OFFSET).to_sklearn(), ValueError, "adds an offset",
        "no estimator of scikit-learn has one",
    ),
    "no offset to predict with": (
        lambda: L1LogisticOBA().fit(X, TWO, offset=OFFSET).predict(X), ValueError,
        "was fitted with an offset",
        "zeros would silently be wrong",
    ),
    "to_sklearn before the fit": (
        lambda: LassoOBACV().to_sklearn(), sklearn.exceptions.NotFittedError, "not fitted", "",
    ),
    "alpha = 0 in a path": (
        lambda: lasso_path(X, NUMBERS, alphas=[1.0, 0.0]), ValueError, "alphas must be > 0",
        "no path leads to zero in the logarithm; LassoOBA(0) is the fit",
    ),
    "penalty known of scikit-learn's own": (
        lambda: StabilitySelection(Lasso()).fit(X, NUMBERS), ValueError, "where the path of Lasso begins",
        "give values",
    ),
}  # fmt: skip


@pytest.mark.parametrize("cell", REFUSED)
def test_what_is_refused_says_why(cell):
    call, error, message, _ = REFUSED[cell]
    with pytest.raises(error, match=message):
        call()


def test_no_public_thing_is_forgotten():
    import sparsekit

    public = {n for n in sparsekit.__all__ if n.startswith(("L1", "l1_", "Lasso", "lasso_", "Stability"))}
    assert public == {name.split(",")[0].split("(")[0] for name in THINGS}
    assert LassoOBA.path is lasso_path


@pytest.fixture(params=THINGS)
def thing(request):
    return THINGS[request.param]


@pytest.fixture(params=FITS)
def fit(request):
    return THINGS[request.param]


@pytest.fixture(params=ESTIMATORS)
def estimator(request):
    return THINGS[request.param]


def frame(values=X):
    return pd.DataFrame(values, columns=NAMES)


def same(one, other, **close):
    for a, b in zip(one[:2], other[:2]):
        assert_allclose(a, b, **{"rtol": 1e-5, "atol": 1e-5, **close})


def is_selection(thing):
    return isinstance(thing, Selection)


def of_classes(thing):
    return len(np.unique(thing.y)) < 5


def outputs(thing):
    return 3 if len(np.unique(thing.y)) == 3 else 1


def offset_of(thing):
    return np.column_stack([OFFSET, -OFFSET, 0 * OFFSET]) if outputs(thing) == 3 else OFFSET


def objective(thing, coef, intercept, X=X, y=None, s=None, l1_ratio=1.0, v=1.0, offset=0.0):
    """What is minimised, written down: C's scale is that of the attribute, the sum plus penalty / C."""
    y = thing.y if y is None else y
    s = np.ones(len(y)) if s is None else s
    penalty = np.sum(v * (l1_ratio * np.abs(coef) + (1 - l1_ratio) / 2 * coef**2))
    z = np.asarray(X, dtype=np.float64) @ coef.T + intercept
    if not of_classes(thing):
        return s @ (y - z[:, 0] - offset) ** 2 / (2 * s.sum()) + ALPHA * penalty
    if z.shape[1] == 1:
        return s @ np.logaddexp(0, np.where(y == 1, -1, 1) * (z[:, 0] + offset)) + penalty / C
    z = z + offset
    loss = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y]
    return s @ loss + penalty / C


@functools.cache
def least(kind, weighted=False, shifted=False):
    """The least objective, by a solver of `reference_oba` that shares nothing with the package.

    ``kind`` names a thing with its target; with `COUNTS` and `UNEVEN`, and an offset, if so.
    """
    thing = THINGS[kind]
    s, v = (COUNTS, UNEVEN) if weighted else (None, np.ones(P))
    if not of_classes(thing):
        smooth = reference.least_squares(X, thing.y, s, fit_intercept=True)
        x = reference.split_lbfgsb(smooth, np.append(v * ALPHA * (N if s is None else s.sum()), 0.0))
    else:
        k = outputs(thing)
        offset = offset_of(thing) if shifted else 0.0
        smooth = (
            reference.multinomial(X, thing.y, k, s, fit_intercept=True, offset=offset)
            if k > 1
            else reference.logistic(X, 2.0 * thing.y - 1, s, fit_intercept=True, offset=offset)
        )
        x = reference.split_lbfgsb(smooth, np.repeat(np.append(v, 0.0) / C, k)).reshape(P + 1, k)
    x = x.reshape(P + 1, -1)
    return objective(thing, x[:P].T, x[P], s=s, v=v, offset=offset_of(thing) if shifted else 0.0)


KINDS = {N: "LassoOBA", 2: "L1LogisticOBA", 3: "L1LogisticOBA, 3 classes"}


def kind(thing):
    return KINDS[len(np.unique(thing.y))]


# certificate


@pytest.mark.parametrize("weighted", [False, True])
def test_the_gap_is_a_true_bound(fit, weighted):
    s, v = (COUNTS, UNEVEN) if weighted else (None, 1.0)
    given = {"sample_weight": s, "penalty_weights": v} if weighted else {}
    best = least(kind(fit), weighted)
    for tol, close in ((TOL, 1e-8), (1e-3, 1e-2)):
        coef, intercept, value, gap = fit.fit(tol=tol, **given)
        reached = objective(fit, coef, intercept, s=s, v=v)
        assert_allclose(reached, value, rtol=1e-10)
        assert 0 <= gap <= close * value and value - gap <= best * (1 + 1e-12) and best <= value * (1 + 1e-9)
    # and far from the end
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, _, value, gap = fit.fit(hessian="lbfgs", max_iter=2, **given)
    assert 1e-6 * best < value - best <= gap < value


@pytest.mark.parametrize("weak", [150.0, 1000.0])
def test_free_features_have_a_bound_where_rows_are_far_from_the_boundary(weak):
    # the correction that makes the dual point feasible moves what is 1e-20 past 0
    draws, shape = np.random.default_rng(1), (31, 43)
    columns = draws.standard_normal(shape) * (draws.random(shape) < 0.5) * 10 ** draws.uniform(-1, 1, 43)
    offset = draws.standard_normal(31)
    y = (offset + columns[:, 0] + draws.standard_normal(31) > 0).astype(int)
    weights = np.where(np.arange(43) < 6, 0.0, 1.0)
    model = L1LogisticOBA(weak, penalty_weights=weights, tol=1e-7).fit(columns, y, offset=offset)
    assert 0 <= model.dual_gap_ <= 1e-6 * model.objective_
    smooth = reference.logistic(columns, 2.0 * y - 1, fit_intercept=True, offset=offset)
    l1 = np.append(weights, 0.0) / weak
    found = reference.objective(smooth, l1, reference.split_lbfgsb(smooth, l1, max_iter=2000))
    assert model.objective_ - model.dual_gap_ <= found * (1 + 1e-12)


# weights of rows and of features


def test_whole_weights_are_repeated_rows_and_zeros_are_absent_ones(thing):
    if is_selection(thing):  # halves of repeated rows are others; `test_stability_selection` draws them
        weight = np.where(np.arange(N) % 4 == 0, 0.0, 1.0)
        some = weight > 0
        same(thing.fit(sample_weight=weight), thing.fit(X[some], thing.y[some]), rtol=1e-9)
        return
    weight = np.arange(N) % 4.0
    rows = np.repeat(np.arange(N), weight.astype(int))
    given = {}
    if "CV" in type(getattr(thing, "model", None)).__name__:
        where = [np.flatnonzero(np.isin(rows, part)) for fold in FOLDS for part in fold]
        given = {"cv": list(zip(where[::2], where[1::2]))}
    found = thing.fit(sample_weight=weight)
    repeated = thing.fit(X[rows], thing.y[rows], **given)
    same(found, repeated)
    assert_allclose(found[2], repeated[2], rtol=1e-8)


def test_weights_of_features_by_array_and_by_name(thing):
    weights = np.ones(P)
    weights[[1, 4]] = 0.0, 3.0
    by_array = thing.fit(frame(), penalty_weights=weights)
    by_name = thing.fit(frame(), penalty_weights={"f1": 0.0, "f4": 3.0})
    by_number = thing.fit(frame(), penalty_weights={1: 0, 4: 3})
    by_series = thing.fit(frame(), penalty_weights=pd.Series(weights, NAMES).sort_values())
    for other in (by_name, by_number, by_series):
        for a, b in zip(by_array[:2], other[:2]):
            assert_array_equal(a, b)
    assert by_array[0][1].all() if is_selection(thing) else by_array[0][:, 1].any()


def test_a_weight_is_a_scaled_column(thing):
    weights = np.linspace(0.25, 4.0, P)
    found, scaled = thing.fit(penalty_weights=weights), thing.fit(X / weights)
    same(found, (scaled[0] if is_selection(thing) else scaled[0] / weights, scaled[1]))


# intercept


def test_only_the_free_intercept_moves_with_columns_and_targets(fit):
    coef, intercept, value, _ = fit.fit()
    shift = np.linspace(-2.0, 3.0, P)
    moved = fit.fit(X + shift)
    expected = intercept - coef @ shift
    same(moved, (coef, expected - expected.mean() if len(coef) > 1 else expected), rtol=1e-4)
    assert_allclose(moved[2], value, rtol=1e-8)
    without = fit.fit(fit_intercept=False)
    assert not without[1].any() and without[2] > value
    if not of_classes(fit):
        same(fit.fit(y=fit.y + 100.0), (coef, intercept + 100.0))


# types, layouts, threads


def test_single_precision_stays_and_is_near_double(fit):
    given = {"tol": 1e-5}
    found = fit.fit(X.astype(np.float32), **given)
    assert found[0].dtype == np.float32 and found[1].dtype in (np.float32, np.float64)
    same(found, fit.fit(X.astype(np.float32).astype(np.float64), **given), rtol=1e-3, atol=1e-3)


def test_formats_give_the_same(thing):
    dense = thing.fit()
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for other in (sp.csr_array(X), sp.csc_matrix(X), wide, sp.coo_array(X), np.asfortranarray(X), frame()):
        same(thing.fit(other), dense)


def test_threads_give_the_same_bits(thing):
    for a, b in zip(thing.fit(n_jobs=1)[:2], thing.fit(n_jobs=2)[:2]):
        if outputs(thing) > 1:  # whose products are those of BLAS
            assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        else:
            assert_array_equal(a, b)


# the elastic net


def peer_of(thing, l1_ratio):
    if not of_classes(thing):
        if l1_ratio == 0:
            return Ridge(ALPHA * N, tol=1e-12)
        return ElasticNet(alpha=ALPHA, l1_ratio=l1_ratio, tol=1e-13, max_iter=10**6)
    options = {"C": C, "tol": 1e-11, "max_iter": 10**5}
    if l1_ratio == 0:
        return LogisticRegression(**options)
    peer = LogisticRegression(l1_ratio=l1_ratio, solver="saga", **options)
    if peer.get_params().get("penalty") == "l2":  # before 1.8
        peer.set_params(penalty="elasticnet")
    return peer


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
def test_every_ratio_is_that_of_scikit_learn(fit, l1_ratio):
    peer = peer_of(fit, l1_ratio).fit(X, fit.y)
    best = objective(fit, np.atleast_2d(peer.coef_), np.ravel(peer.intercept_), l1_ratio=l1_ratio)
    coef, intercept, value, gap = fit.fit(l1_ratio=l1_ratio)
    assert_allclose(objective(fit, coef, intercept, l1_ratio=l1_ratio), value, rtol=1e-10)
    assert_allclose(value, best, rtol=1e-8)
    assert 0 <= gap <= 1e-8 * best and value - gap <= best * (1 + 1e-12)


def test_a_ratio_may_be_chosen_and_selects_in_halves():
    for name in ("L1LogisticOBACV", "L1LogisticOBACV, 3 classes", "LassoOBACV"):
        model = clone(THINGS[name].model).set_params(l1_ratio=[0.0, 0.5, 1.0]).fit(X, THINGS[name].y)
        assert model.l1_ratio_ in model.l1_ratios_ and len(model.l1_ratio_scores_) == 3
        at = clone(model).set_params(l1_ratio=model.l1_ratio_).fit(X, THINGS[name].y)
        assert_allclose(at.coef_, model.coef_, atol=1e-6)
    mixed = THINGS["StabilitySelection(LassoOBA)"].fit(l1_ratio=0.5)
    assert_allclose(mixed[1], 2 * THINGS["StabilitySelection(LassoOBA)"].fit()[1], rtol=1e-6)


@pytest.mark.parametrize("name", [n for n in THINGS if "asso" in n])
def test_coefficients_may_have_to_be_positive(name):
    thing = THINGS[name]
    plain, found = thing.fit(), thing.fit(positive=True)
    if is_selection(thing):
        assert plain[0][1].any() and not found[0][1].any() and found[0][0].any()
        return
    peer = ElasticNet(alpha=ALPHA, l1_ratio=1.0, positive=True, tol=1e-13, max_iter=10**6).fit(X, thing.y)
    assert (plain[0] < 0).any() and (found[0] >= 0).all()
    assert_allclose(found[2], objective(thing, peer.coef_[None], [peer.intercept_]), rtol=1e-8)
    assert 0 <= found[3] <= 1e-8 * found[2]


# offsets


def test_an_offset_is_a_column_with_coefficient_one(thing):
    offset = offset_of(thing)
    found = thing.fit(offset=offset)
    if not of_classes(thing):
        same(found, thing.fit(y=thing.y - OFFSET), rtol=1e-6)
        return
    if is_selection(thing):
        plain = thing.fit()
        assert not np.array_equal(found[0], plain[0])
        same(thing.fit(offset=np.zeros(N)), plain, rtol=0, atol=0)
        return
    coef, intercept, value, gap = found
    assert_allclose(objective(thing, coef, intercept, offset=offset), value, rtol=1e-10)
    best = least(kind(thing), shifted=True)
    assert_allclose(value, best, rtol=1e-8)
    assert value - gap <= best * (1 + 1e-12)


def test_predictions_add_the_offset(estimator):
    offset = offset_of(estimator)
    model = clone(estimator.model).fit(X, estimator.y, offset=offset)
    method = "decision_function" if of_classes(estimator) else "predict"
    scores = getattr(model, method)(X, offset=offset)
    assert_allclose(scores, getattr(model, method)(X, offset=0.0) + offset, atol=1e-12)
    assert_allclose(getattr(model, method)(X[:1], offset=offset[:1]), scores[:1], atol=1e-12)
    assert model.needs_offset_ and np.isfinite(model.score(X, estimator.y, offset=offset))


def test_offset_and_weights_go_where_routing_says(estimator):
    offset = offset_of(estimator)
    y, given = estimator.y, {"sample_weight": COUNTS, "offset": offset}
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(estimator.model).set_fit_request(sample_weight=True, offset=True)
        model.set_predict_request(offset=True).set_score_request(offset=True, sample_weight=True)
        if isinstance(model, L1LogisticOBACV | LassoOBACV):
            scorer = get_scorer("accuracy" if of_classes(estimator) else "neg_mean_squared_error")
            model.set_params(scoring=scorer.set_score_request(sample_weight=True))
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, clone(model)).fit(X, y, **given)
        scaled = pipeline[0].transform(X)
        direct = clone(model).fit(scaled, y, sample_weight=None, offset=offset)
        assert np.abs(pipeline[-1].coef_ - direct.coef_).max() > 1e-3  # weights arrived
        assert_array_equal(pipeline.predict(X, offset=offset), pipeline[-1].predict(scaled, offset=offset))
        if isinstance(model, L1LogisticOBACV | LassoOBACV):
            return
        search = GridSearchCV(model, {"fit_intercept": [True]}, cv=KFold(2)).fit(X, y, **given)
        scores = []
        for a, b in KFold(2).split(X):
            part = clone(model).fit(X[a], y[a], sample_weight=COUNTS[a], offset=offset[a])
            scores.append(part.score(X[b], y[b], sample_weight=COUNTS[b], offset=offset[b]))
        assert_allclose(search.cv_results_["mean_test_score"], np.mean(scores), rtol=1e-9)


# callbacks


class Recorder:
    """A callback of scikit-learn's protocol."""

    def __init__(self):
        self.tasks = []

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context):
        self.tasks.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.tasks.append(context.task_name)

    def on_fit_task_end(self, estimator, context, **found):
        self.tasks.append(f"{context.task_name} ends")


@pytest.mark.parametrize("name", [n for n in THINGS if "ath" not in n])
def test_callbacks_of_scikit_learn(name):
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    thing, recorder = THINGS[name], Recorder()
    if is_selection(thing):
        model = StabilitySelection(clone(thing.model), n_pairs=3, penalties=3, n_jobs=2)
        task, count = "half", 6
    else:
        model = clone(thing.model)
        task, count = ("fold", 3) if "CV" in name else ("iteration", None)
    model.set_callbacks(recorder).fit(X, thing.y)
    assert recorder.tasks[0] == "fit" and recorder.tasks[-2:] == ["fit ends", "teardown"]
    assert recorder.tasks.count(task) == recorder.tasks.count(f"{task} ends") >= (count or 1)
    assert count in (None, recorder.tasks.count(task))


@pytest.mark.parametrize("name", [n for n in THINGS if "CV" not in n])
def test_callbacks_of_the_package_see_copies_and_stop(name):
    thing, seen = THINGS[name], []

    def watch(intermediate_result):
        seen.append((intermediate_result.fun, intermediate_result.nnz))
        intermediate_result.x[:] = np.nan

    watched = thing.fit(callback=watch)
    assert seen and np.isfinite(seen).all()
    same(watched, thing.fit())
    del seen[:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who stops a fit need not be told so
        thing.fit(callback=lambda result: seen.append(result.nit) or True)
    assert len(seen) == (6 if is_selection(thing) else 1)


# ways out


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_scikit_learn_predicts_the_same_bits(estimator, l1_ratio):
    model = clone(estimator.model).set_params(l1_ratio=l1_ratio).fit(frame(), estimator.y)
    twin = pickle.loads(pickle.dumps(model.to_sklearn()))
    for rows in (frame(), frame()[:1]):
        assert_array_equal(twin.predict(rows), model.predict(rows))
        if of_classes(estimator):
            assert_array_equal(twin.decision_function(rows), model.decision_function(rows))
    wanted = {True: LogisticRegression, False: Lasso if l1_ratio == 1 else ElasticNet}[of_classes(estimator)]
    assert type(twin) is wanted and list(twin.feature_names_in_) == NAMES
    # fitted again it is the same model
    again = clone(twin).set_params(tol=1e-10, max_iter=10**5).fit(frame(), estimator.y)
    assert_allclose(again.coef_, model.coef_, atol=1e-4)


def test_tables_and_pictures_name_the_features(estimator):
    model = clone(estimator.model).fit(frame(), estimator.y)
    table = model.coefficients()
    assert sorted(table.index) == NAMES and table.shape == (P, len(np.atleast_2d(model.coef_)))
    largest = table.abs().max(axis=1).to_numpy()
    assert (np.diff(largest) <= 0).all()
    used = int((largest > 0).sum())
    assert (
        f"{used} of {P} features have a coefficient that is not zero: {table.index[0]}" in model._repr_html_()
    )
    assert repr(model).startswith(type(model).__name__ + "(") and "tol=1e-09" in repr(model)


# least squares without a slope; targets that are no numbers; folds and scores that are none


@pytest.mark.parametrize("columns", [np.ones((N, 3)), np.zeros((N, 3))])
@pytest.mark.parametrize("options", [{}, {"l1_ratio": 0.5}, {"l1_ratio": 0.0}, {"hessian": "lbfgs"}])
def test_constant_columns_are_fitted_without_a_warning(columns, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LassoOBA(0.1, **options).fit(columns, NUMBERS)
    assert_allclose(model.coef_, 0.0, atol=1e-15)
    assert_allclose(model.intercept_, NUMBERS.mean())
    # a gap that is small by the tolerance alone is no such proof
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        LassoOBA(1e-4, max_iter=1, tol=1e-12, hessian="lbfgs").fit(X, NUMBERS)


@pytest.mark.parametrize("name", [n for n in THINGS if "asso" in n])
def test_targets_that_are_no_numbers_are_named(name):
    thing = THINGS[name]
    words = np.where(TWO, "a", "b")
    for y, shown in (
        (words, "'a'|'b'"), (words.astype(object), "'a'|'b'"), (list(words), "'a'|'b'"),
        (pd.Series(words), "'a'|'b'"),
        (np.arange(N).astype("M8[D]"), "1970-01-01"), (pd.Series(np.arange(N).astype("m8[s]")), "0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"y must hold numbers; it holds .*({shown})"):
            thing.fit(y=y)
    same(thing.fit(y=NUMBERS.astype(object)), thing.fit(), rtol=1e-12)
    same(thing.fit(y=[str(value) for value in NUMBERS]), thing.fit(), rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in ESTIMATORS if "CV" in n and "3" not in n])
def test_folds_and_scores_that_are_none_are_refused(name):
    model, y = THINGS[name].model, THINGS[name].y
    rows = np.arange(N)
    for cv, message in (
        ([], "cv has no folds"), ([(rows, [])], "The left-out part of fold 0 has no rows"),
        ([FOLDS[0], (rows[:0], rows)], "The training part of fold 1 has no rows"),
        ([(rows < 0, rows)], "The training part of fold 0 has no rows"),
        ([(rows, [N])], f"The left-out part of fold 0 has rows that X lacks, which has {N}"),
        ([([0.5, 1.5], rows)], "The training part of fold 0 has rows that X lacks"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            clone(model).set_params(cv=cv).fit(X, y)
    masks = [tuple(np.isin(rows, part) for part in fold) for fold in FOLDS]
    assert_array_equal(
        clone(model).set_params(cv=masks).fit(X, y).coef_, clone(model).set_params(cv=FOLDS).fit(X, y).coef_
    )
    for answer, message in (
        (np.nan, "scoring gives NaN for the left-out part of fold 0 at (C|alpha)="),
        ("good", "scoring must return a number; got 'good'"),
        (None, "scoring must return a number; got None"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            clone(model).set_params(scoring=lambda estimator, X, y, answer=answer: answer).fit(X, y)


def test_a_threshold_that_was_changed_is_checked():
    model = StabilitySelection(LassoOBA(), n_pairs=2, penalties=3).fit(X, NUMBERS)
    for threshold in (0.5, 3, "high"):
        with pytest.raises(ValueError, match="threshold must be above"):
            model.set_params(threshold=threshold).get_support()


# the solver itself


@pytest.mark.parametrize("name", ["LassoOBA", "L1LogisticOBA"])
def test_the_solver_has_what_its_estimators_have(name):
    thing = THINGS[name]
    y = 2.0 * thing.y - 1 if of_classes(thing) else thing.y
    make, scale = (LogisticLoss, 1 / C) if of_classes(thing) else (LeastSquaresLoss, ALPHA * COUNTS.sum())
    weights = np.linspace(0.0, 2.0, P)
    seen = []
    for matrix in (X, sp.csr_array(X), sp.csc_array(X)):
        for n_threads in (1, 2):
            loss = make(matrix, y, COUNTS, fit_intercept=True, offset=OFFSET, n_threads=n_threads)
            l1 = loss.l1_vector(scale * weights)
            seen.append(minimize_oba(loss, 0.5 * l1, l2=0.5 * l1, tol=TOL, callback=lambda r: None))
        assert_array_equal(seen[-1].x, seen[-2].x)
    coef, intercept, value, _ = thing.fit(
        sample_weight=COUNTS, offset=OFFSET, penalty_weights=weights, l1_ratio=0.5
    )
    unit = 1.0 if of_classes(thing) else COUNTS.sum()
    for result in seen:
        assert_allclose(result.x, np.append(coef, intercept), atol=1e-6)
        assert_allclose(result.fun / unit, value, rtol=1e-9)
        assert 0 <= result.dual_gap <= 1e-8 * result.fun


def test_without_a_penalty_the_twin_is_linear_regression():
    model = LassoOBA(0.0).fit(X, NUMBERS)
    twin = model.to_sklearn()
    assert type(twin) is LinearRegression
    assert_array_equal(twin.predict(X), model.predict(X))


def test_columns_of_words_are_named(thing):
    words = frame().assign(colour="red", place="x")
    with pytest.raises(ValueError, match="column 'colour' of X holds 'red', and X must hold numbers"):
        thing.fit(words)
    same(thing.fit(frame().astype(object)), thing.fit(), rtol=1e-9)
