"""Errors and warnings show numbers as a user types them: 0.5, where NumPy 2 would write np.float64(0.5)."""

import ast
import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import InvalidParameterError

import sparsekit
from sparsekit import FactorGraph, datasets, inspection, metrics, optimize
from sparsekit._messages import numbers, plain, shown

# mistakes that come out of arrays: numbers for words, words for numbers, numbers out of range
MISTAKES = [
    np.float64(-1.5),
    np.float32(np.nan),
    np.int64(-7),
    np.str_("nonsense"),
    np.bool_(True),
    [np.float64(-1.5), np.int32(2)],
    (np.float64(2.5), np.float64(-2.5)),
    {np.str_("x"): np.float64(-1.0)},
    {np.int64(0): np.float64(-1.0)},
    {np.int64(0): (np.float64(1.0), np.float64(-1.0))},
    np.array([np.float64(0.5), None], dtype=object),
]
NUMPY = re.compile(r"\bnp\.\w+\(")


def test_shown():
    assert (
        shown(np.float64(0.5)) == "0.5" and shown(np.str_("a")) == "'a'" and shown(np.bool_(True)) == "True"
    )
    assert shown(np.longdouble(0.5)) == "0.5" and shown(np.int8(3)) == "3"
    nested = {np.str_("a"): [np.float64(1.0), (np.int64(2),), {np.int64(3)}]}
    assert shown(nested) == "{'a': [1.0, (2,), {3}]}"
    assert shown(np.array([np.float64(1.0), None], dtype=object)) == "array([1.0, None], dtype=object)"
    assert shown("plain") == "'plain'" and shown(None) == "None"
    assert shown(np.datetime64("2020-01-02", "ns")).startswith("'2020-01-02T00")
    assert shown([np.timedelta64(3, "ns")]) == "['3 nanoseconds']"
    array = np.ones(2)
    assert plain(array) is array


@pytest.mark.parametrize(
    "value",
    [
        "a" * 10**6,
        ["a"] * 10**6,
        (1.5,) * 10**6,
        dict.fromkeys(range(10**6)),
        {"x": {"y" * 10**6}},
        [[0] * 999] * 999,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_shown_is_short(value):
    """Also the time: what would be cut off is not written out first."""
    assert shown(value) == repr(value)[:200] + "…"
    assert plain(value) == value
    seen = []

    class Told:
        def __repr__(self):
            seen.append(self)
            return "it"

    assert len(shown([Told()] * 10**5)) == 201 and 50 < len(seen) < 300
    assert shown("a" * 198) == repr("a" * 198)


REAL = {
    "sample_weight": lambda bad: sparsekit.LassoOBA().fit(*data(), sample_weight=bad(24)),
    "sample_weight of a regressor": lambda bad: sparsekit.BoundedRegressor().fit(
        *data(), sample_weight=bad(24)
    ),
    "sample_weight of a loss": lambda bad: optimize.LeastSquaresLoss(*data(), sample_weight=bad(24)),
    "offset": lambda bad: sparsekit.L1LogisticOBA().fit(*data(), offset=bad(24)),
    "offset of a prediction": lambda bad: (
        sparsekit.LassoOBA().fit(*data()).predict(data()[0], offset=bad(24))
    ),
    "offset of a loss": lambda bad: optimize.ProbitLoss(data()[0], np.ones(24), offset=bad(24)),
    "penalty_weights": lambda bad: sparsekit.L1LogisticOBA(penalty_weights=bad(3)).fit(*data()),
    "lambdas": lambda bad: sparsekit.l1_logistic_path(*data(), lambdas=bad(2)),
    "alphas": lambda bad: sparsekit.fenchel_young_path(*data(), alphas=bad(2)),
    "noise": lambda bad: sparsekit.ExtremeSoftmaxSGD(noise=bad(2), learning_rate=0.1).fit(*data()),
    "x0": lambda bad: optimize.minimize_nqn(lambda x: (x @ x, 2 * x), bad(3)),
}


def data():
    return np.random.default_rng(0).standard_normal((24, 3)), np.arange(24) % 2


@pytest.mark.parametrize("name", REAL)
def test_complex_numbers_are_refused(name):
    """NumPy would drop the imaginary part, with a warning."""
    call = REAL[name]
    for form in (np.asarray, list, np.ndarray.tolist, pd.Series):
        with pytest.raises(ValueError, match=rf"^{name.split()[0]} must hold real numbers; got complex ones"):
            call(lambda n, form=form: form(np.ones(n) + 1j))


@pytest.mark.parametrize("weight", ["array", "list"])
def test_complex_numbers_on_a_gpu(cupy, weight):
    ones = cupy.ones(24) + 1j
    with pytest.raises(ValueError, match=r"^y must hold real numbers; got complex ones"):
        numbers(ones if weight == "array" else [1j], "y", cupy)
    X, y = map(cupy.asarray, data())
    with pytest.raises(ValueError, match="sample_weight must hold real numbers"):
        sparsekit.LassoOBA().fit(X, y, sample_weight=ones)


def test_repr_is_made_in_one_function():
    """No f-string of the package has ``!r``, nor a call of repr(), outside of methods that are a repr."""
    wrong, seen = [], 0
    folder = Path(sparsekit.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        allowed = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
            and (node.name.startswith("__") or node.name.endswith("repr"))
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            is_field = isinstance(node, ast.FormattedValue) and node.conversion == ord("r")
            is_call = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "repr"
            old = isinstance(node, ast.Constant) and isinstance(node.value, str) and "%r" in node.value
            seen += is_field or is_call
            if (is_field or is_call or old) and id(node) not in allowed:
                wrong.append(f"{path.relative_to(folder)}:{node.lineno}")
    # the two functions named `shown`: of values, and of pieces of a file, which are text
    home = [line for line in wrong if line.split(":")[0] in ("_messages.py", "datasets/_files.py")]
    assert len(home) == 2 and sorted(wrong) == sorted(home)
    assert seen > 2


def said(call):
    """All that a call says: warnings, and the error that it ends with."""
    texts = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            while error is not None:  # what is chained to it is printed as well
                texts.append(f"{type(error).__name__}: {error}")
                error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return texts + [str(w.message) for w in caught]


PUBLIC = [getattr(sparsekit, name) for name in sparsekit.__all__]
ESTIMATORS = [thing for thing in PUBLIC if isinstance(thing, type) and issubclass(thing, BaseEstimator)]


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_parameters_of_estimators(cls):
    X = np.random.default_rng(0).standard_normal((24, 3))
    y = np.arange(24) % 2
    few = {"max_iter": 2, "tol": 1e-2, "n_pairs": 2}
    model = cls(**{name: few[name] for name in few.keys() & cls().get_params().keys()})
    found = set()
    for name in sorted(model.get_params(deep=False)):
        for value in MISTAKES:
            texts = said(lambda name=name, value=value: clone(model).set_params(**{name: value}).fit(X, y))
            for text in texts:
                assert not NUMPY.search(text), f"{cls.__name__}({name}={value!r}): {text}"
                found.add((name, text))
    assert len({name for name, _ in found}) > 5  # most parameters have something to say


def functions():
    """Public functions, with arguments that they take."""
    X = np.random.default_rng(0).standard_normal((24, 3))
    y = np.arange(24) % 2
    model = sparsekit.L1LogisticOBA(tol=1e-2).fit(X, y)

    def square(x):
        return float(x @ x), 2 * x

    graph = FactorGraph()
    graph.add(sparsekit.Xor(graph.variable((3,))))
    yield sparsekit.l1_logistic_path, (X, y), {"max_iter": 2}
    yield sparsekit.lasso_path, (X, y), {"max_iter": 2}
    yield sparsekit.fenchel_young_path, (X, y), {"alphas": [1.0], "max_iter": 2}
    yield optimize.minimize_nqn, (square, np.ones(3)), {}
    yield optimize.minimize_oba, (optimize.LogisticLoss(X, 2.0 * y - 1), 1.0), {"max_iter": 2}
    yield optimize.LogisticLoss, (X, 2.0 * y - 1), {}
    yield optimize.nonsmooth_problems, (), {}
    yield inspection.sharpness, (square, np.ones(3)), {"n_starts": 1}
    yield inspection.sharpness, (model, X, y), {}
    yield sparsekit.sparsemax, (X,), {}
    yield sparsekit.sparsemax_loss, (X, y), {}
    yield metrics.kkt_violation, (model, X, y), {}
    yield metrics.precision_at_k, (X, y), {}
    yield graph.solve, (), {}
    yield sparsekit.Budget, (graph.variable((3,)),), {"budget": 1}
    yield sparsekit.Knapsack, (graph.variable((3,)), np.ones(3)), {"capacity": 1.0}
    for name in datasets.__all__:
        if name.startswith("make_"):
            yield getattr(datasets, name), (), {}


@pytest.mark.parametrize("case", list(functions()), ids=lambda case: case[0].__qualname__)
def test_arguments_of_functions(case, monkeypatch):
    import matplotlib

    matplotlib.use("agg")
    function, args, kwargs = case
    bound = inspect.signature(function).bind_partial(*args).arguments
    names = [name for name in inspect.signature(function).parameters if name not in bound]
    spoken = 0
    for name in names:
        for value in MISTAKES:
            texts = said(lambda name=name, value=value: function(*args, **{**kwargs, name: value}))
            for text in texts:
                assert not NUMPY.search(text), f"{name}={value!r}: {text}"
            spoken += len(texts)
    assert spoken or not names


def test_parameters_keep_their_values():
    """What is shown plainly is not changed: the estimator holds what it was given."""
    C = np.float64(0.5)
    model = sparsekit.L1LogisticOBA(C=C)
    model.fit([[1.0], [2.0], [3.0]], [0, 1, 1])
    assert model.C is C
    with pytest.raises(InvalidParameterError, match=r"Got -0\.5 instead"):
        clone(model).set_params(C=np.float64(-0.5)).fit([[1.0], [2.0]], [0, 1])


def test_messages_say_what_to_do():
    """Mistakes of a first day: what is wrong, what it got, what to do."""
    X, y = np.ones((4, 2)), np.array([0, 1, 0, 1])
    words = np.array([["1", "u"]] * 4)
    graph = FactorGraph()
    graph.variable((2,))
    squares = optimize.LeastSquaresLoss(X, y)
    Imply, labels = sparsekit.Imply, np.eye(4, dtype=int)
    for call, message in [
        (lambda: sparsekit.LassoOBA().fit(words, y), r"column 1 of X holds 'u', .*OneHotEncoder"),
        (lambda: sparsekit.LassoOBA().fit(words.tolist(), y), "column 1 of X holds 'u'"),
        (lambda: sparsekit.minimize_oba(squares, [1.0, -2.0]), r"finite and at least 0; l1\[1\] is -2"),
        (lambda: sparsekit.minimize_oba(abs, 1.0), "such as sparsekit.optimize.LogisticLoss; builtin_"),
        (lambda: graph.add(sparsekit.Xor), r"such as Xor\(u\); got the class Xor"),
        (lambda: sparsekit.Xor(X), r"u = graph.variable\(scores\)"),
        (
            lambda: sparsekit.LPSparseMAPClassifier(factors=[("Imply", [0, 1])]).fit(labels, labels),
            r"got \('Imply', \[0, 1\]\)\. For example \[\(Imply, \[4, 7\]\)\]",
        ),
        (lambda: sparsekit.LPSparseMAPClassifier(factors=Imply).fit(labels, labels), "got the class Imply"),
        (lambda: sparsekit.save("a.npz", None), r"save\(model, path\) .* got str"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            call()
    with pytest.raises(AttributeError) as raised:
        sparsekit.L1Logistic  # noqa: B018
    assert (raised.value.name, raised.value.obj) == ("L1Logistic", sparsekit)  # for Python's suggestion
