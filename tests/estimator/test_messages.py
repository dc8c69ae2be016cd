"""Errors and warnings show numbers as a user types them: 0.5, where NumPy 2 would write np.float64(0.5)."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError

import sparsekit
from sparsekit import FactorGraph, optimize
from sparsekit._messages import numbers, plain, shown


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
        "a" * 10**5,
        ["a"] * 10**5,
        (1.5,) * 10**5,
        dict.fromkeys(range(10**5)),
        {"x": {"y" * 10**5}},
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
    home = [line for line in wrong if line.split(":")[0] == "_messages.py"]  # `shown`
    assert len(home) == 1 and wrong == home
    assert seen > 1


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
