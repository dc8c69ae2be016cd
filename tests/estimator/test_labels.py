"""What every classifier and path says of targets that are no class labels."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning

import sparsekit as sk

MODELS = [
    sk.L1LogisticOBA(),
    sk.L1LogisticOBACV(Cs=2, cv=2),
    sk.OrdinalOBA(),
    sk.BoundedClassifier(),
    sk.SparsemaxClassifier(),
    sk.SoftmaxClassifier(),
    sk.SparsemaxClassifierCV(alphas=[1.0], cv=2),
    sk.SoftmaxClassifierCV(alphas=[1.0], cv=2),
    sk.ExtremeSoftmaxSGD(learning_rate=0.1, max_iter=1),
    sk.LPSparseMAPClassifier(),
    sk.LPSparseMAPClassifierCV([0.1], cv=2),
]
FITS = {type(model).__name__: lambda X, y, model=model: clone(model).fit(X, y) for model in MODELS}
FITS |= {
    "ExtremeSoftmaxSGD.partial_fit": lambda X, y: sk.ExtremeSoftmaxSGD(learning_rate=0.1).partial_fit(X, y),
    "l1_logistic_path": lambda X, y: sk.l1_logistic_path(X, y, n_lambdas=2),
    "fenchel_young_path": lambda X, y: sk.fenchel_young_path(X, y, alphas=[1.0]),
}
every = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


def rows(n=60):
    X = np.random.default_rng(0).standard_normal((n, 4))
    return X, np.where(X[:, 0] > 0, "spam", "ham").astype(object)


def test_no_classifier_is_forgotten():
    public = (getattr(sk, name) for name in sk.__all__)
    classifiers = {
        thing for thing in public if isinstance(thing, type) and issubclass(thing, ClassifierMixin)
    }
    assert classifiers == {type(model) for model in MODELS}


CONTAINERS = {
    "array": np.asarray,
    "list": list,
    "tuple": tuple,
    "series": pd.Series,
    "strings": lambda y: pd.Series(y, dtype="string"),
    "categories": lambda y: pd.Series(y, dtype="category"),
    "column": lambda y: y[:, None],
    "list of lists": lambda y: y[:, None].tolist(),
    "frame": lambda y: pd.DataFrame({"y": y}),
    "frame of categories": lambda y: pd.DataFrame({"y": y}, dtype="category"),
}


@pytest.mark.parametrize(
    "fit, container",
    [("L1LogisticOBA", container) for container in CONTAINERS]
    + [(fit, container) for fit in [*FITS][1:] for container in ("list", "categories", "frame")],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_missing_labels_among_strings_name_y(fit, container):
    X, labels = rows()
    fit, container = FITS[fit], CONTAINERS[container]
    fit(X, container(labels))
    for bad in (None, np.nan):
        y = labels.copy()
        y[[3, 7]] = bad
        with pytest.raises(ValueError, match=r"Input y contains (NaN|None) \(row 3, the first of 2\)"):
            fit(X, container(y))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("bad", [None, np.nan], ids=str)
def test_a_score_names_missing_labels(model, bad):
    X, y = rows()
    fitted = clone(model).fit(X, y)
    assert np.isfinite(fitted.score(X, y))
    y[3] = bad
    for labels in (y, y.tolist(), pd.Series(y), y[:, None]):
        with pytest.raises(ValueError, match=r"Input y contains (NaN|None) \(row 3\)"):
            fitted.score(X, labels)


@every
def test_labels_of_two_kinds_are_named(fit):
    X, y = rows()
    y[3] = 1
    with pytest.raises(TypeError, match=r"y must hold labels of one kind.* \(str\) and 1 \(int\)"):
        fit(X, y)


@every
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_measurements_are_refused(fit, dtype):
    X, _ = rows()
    for y in (X[:, 1], np.arange(60) / 2):
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            fit(X, y.astype(dtype))


@every
def test_whole_numbers_are_classes_however_many(fit):
    """As in scikit-learn; 25 classes of 60 rows are no reason to warn of."""
    X, _ = rows()
    y = np.arange(60) % 25
    for labels in (y, y.astype(float), y + 1000):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = fit(X, labels)
        classes = found.classes if hasattr(found, "classes") else found.classes_
        np.testing.assert_array_equal(classes, np.unique(labels))


@every
def test_more_classes_than_half_the_rows_are_warned_of(fit, request):
    """As scikit-learn does, but for the classifier of very many classes; and where the user's call stands."""
    X, _ = rows()
    y = np.concatenate([np.arange(35), np.arange(25)])
    name = request.node.callspec.id
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit(X, y)
        except ValueError as error:  # folds with no row of some class
            assert "CV" in name and "n_splits" in str(error)
    told = [w for w in caught if "greater than 50%" in str(w.message)]
    if name.startswith("Extreme"):
        assert not told
        return
    assert len(told) == 1 and "35 classes, 60 samples" in str(told[0].message)
    assert told[0].filename == __file__
    assert issubclass(told[0].category, UserWarning)


NOT_TRIED_ON_A_GPU = (
    sk.OrdinalOBA, sk.L1LogisticOBACV, sk.SparsemaxClassifierCV, sk.SoftmaxClassifierCV,
    sk.LPSparseMAPClassifierCV,
)  # fmt: skip


@pytest.mark.parametrize("model", [model for model in MODELS if not isinstance(model, NOT_TRIED_ON_A_GPU)])
def test_measurements_on_a_gpu(cupy, model):
    X, _ = rows()
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        clone(model).fit(cupy.asarray(X), cupy.asarray(X[:, 1]))
    with pytest.raises(TypeError, match="OrdinalOBA takes no arrays of a GPU, and X is one"):
        sk.OrdinalOBA().fit(cupy.asarray(X), cupy.asarray(X[:, 1]))


def stream():
    X = np.random.default_rng(0).standard_normal((40, 3))
    return X, np.repeat(["a", "b", "c", "d"], 10)


@pytest.mark.parametrize("device", ["host", "gpu"])
def test_partial_fit_refuses_labels_outside_of_classes(device, cupy):
    """From the call on that names the classes; whoever names none gets every new label added."""
    X, y = stream()
    labels = y
    if device == "gpu":
        X, y = cupy.asarray(X), cupy.asarray(np.unique(y, return_inverse=True)[1])
        labels = y.get()
    a, b, c, d = (label.item() for label in np.unique(labels))
    model = sk.ExtremeSoftmaxSGD(learning_rate=0.1, random_state=0)
    with pytest.raises(
        ValueError, match=rf"label {c!r}, which is not among the classes.*and 1 more"
    ) as caught:
        clone(model).partial_fit(X, y, classes=[a, b])
    assert "np." not in str(caught.value)
    closed = clone(model).partial_fit(X[:20], y[:20], classes=[a, b])
    before, seen = closed.coef_.copy(), closed.t_
    with pytest.raises(ValueError, match=rf"label {c!r}, which is not among"):
        closed.partial_fit(X[20:30], y[20:30])
    assert (closed.coef_ == before).all() and closed.t_ == seen and len(closed.classes_) == 2
    # naming more classes is asking for them
    closed.partial_fit(X[20:30], y[20:30], classes=[a, b, c])
    assert len(closed.classes_) == 3
    with pytest.raises(ValueError, match=rf"label {d!r}, which is not among"):
        closed.partial_fit(X[30:], y[30:])
    open_ = clone(model).partial_fit(X[:20], y[:20]).partial_fit(X[20:30], y[20:30])
    assert len(open_.classes_) == 3
    open_.partial_fit(X[:10], y[:10], classes=[a])
    with pytest.raises(ValueError, match=rf"label {d!r}, which is not among"):
        open_.partial_fit(X[30:], y[30:])
    # a fit drops the classes that were named
    closed.fit(X[:20], y[:20]).partial_fit(X, y)
    assert len(closed.classes_) == 4


def test_classes_of_partial_fit_are_checked():
    X, y = stream()
    model = sk.ExtremeSoftmaxSGD(learning_rate=0.1)
    with pytest.raises(ValueError, match=r"Input classes contains None \(entry 2\)"):
        model.partial_fit(X, y, classes=["a", "b", None])
    with pytest.raises(ValueError, match="classes: Unknown label type: continuous"):
        model.partial_fit(X, np.arange(40) % 2, classes=[0.0, 0.5])
    for none in ([], np.empty(0, dtype=int)):
        with pytest.raises(ValueError, match="classes is empty; name at least one class"):
            model.partial_fit(X, y, classes=none)


def test_more_classes_are_of_the_same_kind():
    X, y = stream()
    numbers = np.arange(40) % 2
    model = sk.ExtremeSoftmaxSGD(learning_rate=0.1).partial_fit(X, numbers, classes=[0, 1])
    with pytest.raises(
        ValueError, match=r"classes has labels of type <U1, such as 'a', but .* type int64, such as 0"
    ):
        model.partial_fit(X, y, classes=["a", "b"])
    assert model.classes_.tolist() == [0, 1]
    model = sk.ExtremeSoftmaxSGD(learning_rate=0.1).partial_fit(X, y, classes=np.unique(y))
    with pytest.raises(ValueError, match=r"classes has labels of type int64, such as 0, but .* type <U1"):
        model.partial_fit(X, numbers, classes=[0, 1])
    with pytest.raises(ValueError, match=r"y has labels of type int64, such as 0, but .* type <U1"):
        model.partial_fit(X, numbers)


@every
def test_lists_of_labels_are_sent_to_the_binarizer(fit):
    X, _ = rows(4)
    for y in ([["a"], ["b", "c"], ["a"], []], [("a", "b")] * 4, pd.Series([{"a"}, {"b"}, {"a", "b"}, {"a"}])):
        with pytest.raises(ValueError, match=r"^y must hold one label a row.*MultiLabelBinarizer"):
            fit(X, y)


def _coef(model):
    parts = (getattr(model, name, ()) for name in ("coef_", "transitions_"))
    return np.concatenate([np.ravel(part) for part in parts])


WEIGHTED = [model for model in MODELS if "class_weight" in model.get_params()]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", WEIGHTED, ids=lambda model: type(model).__name__)
def test_weights_of_classes_that_the_rows_lack(model):
    """As in scikit-learn: a fold may lack a class; where a class has no weight, a key for none is refused."""
    X, y = rows()
    model = clone(model)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    expected = clone(model).set_params(class_weight={"ham": 1.0, "spam": 3.0}).fit(X, y)
    found = clone(model).set_params(class_weight={"ham": 1.0, "spam": 3.0, "eggs": 9.0}).fit(X, y)
    np.testing.assert_array_equal(_coef(found), _coef(expected))
    with pytest.raises(
        ValueError, match="the key 'eggs', which is not a class, and none for the class 'ham'"
    ):
        clone(model).set_params(class_weight={"spam": 3.0, "eggs": 9.0}).fit(X, y)


def test_weights_of_labels_that_the_sequences_lack():
    X, y = [np.eye(3), np.eye(3)[:2]], [["a", "b", "a"], ["b", "a"]]
    few, many = {"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0, "c": 9.0}
    steps = sk.SequenceTagger()
    for fit in (
        lambda weight: sk.SequenceTagger(class_weight=weight).fit(X, y),
        lambda weight: clone(steps).set_params(class_weight=weight).partial_fit(X, y, classes=["a", "b"]),
    ):
        np.testing.assert_array_equal(_coef(fit(many)), _coef(fit(few)))
        with pytest.raises(ValueError, match="the key 'c', which is not a class, and none for the class 'b'"):
            fit({"a": 1.0, "c": 9.0})
