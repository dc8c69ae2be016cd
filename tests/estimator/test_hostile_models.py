"""`load` of files that were changed: a ValueError that says why, or the same model; never anything else."""

import io
import json
import random
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from saved_models import X, fitted

import sparsekit as sk
from sparsekit._saved import contracts
from sparsekit._storage import npz


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def saved(name, path, **options):
    sk.save(fitted(name), path, **options)
    return path


def members(path):
    """{member: bytes}."""
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def write(path, parts):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def npy(array, **options):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), **options)
    return out.getvalue()


def with_header(path, change):
    """The file with its header as ``change`` leaves it."""
    parts = members(path)
    header = json.loads(parts[npz.HEADER])
    change(header)
    write(path, {**parts, npz.HEADER: json.dumps(header)})


def with_array(path, name, array, told=True):
    """The file with another array; ``told``: the header's list says so."""
    array, parts = np.asarray(array), members(path)
    assert f"{name}.npy" in parts
    write(path, {**parts, f"{name}.npy": npy(array)})
    if told:
        with_header(
            path, lambda h: h["arrays"].update({name: {"dtype": array.dtype.str, "shape": list(array.shape)}})
        )


def refused(path, why, **options):
    with pytest.raises(ValueError, match=rf"(?s)model\.npz' is no model that load takes: .*(?:{why})"):
        sk.load(path, **options)


@pytest.mark.parametrize(
    "name, array, change, why",
    [
        ("L1LogisticOBA", "coef_", lambda a: a[:, :-1], r"coef_ must have the shape \(1, 6\); got \(1, 5\)"),
        ("L1LogisticOBA", "coef_", lambda a: a.astype("i8"), "coef_ has the dtype int64"),
        ("L1LogisticOBA", "coef_", lambda a: a * np.nan, "coef_ holds NaN or infinity"),
        ("L1LogisticOBA", "intercept_", lambda a: a + np.inf, "intercept_ holds NaN or infinity"),
        ("L1LogisticOBA", "intercept_", lambda a: a[:0], r"intercept_ must have the shape .*got \(0,\)"),
        ("L1LogisticOBA", "classes_", lambda a: a[:1], "fewer than 2"),
        ("L1LogisticOBA", "classes_", lambda a: a[[0, 0]], "a label twice"),
        ("L1LogisticOBA", "classes_", lambda a: a[:, None], "no vector of labels"),
        ("L1LogisticOBA", "history_.0", lambda a: a[:-1], "history_.* must have the shape"),
        ("L1LogisticOBA", "n_iter_", lambda a: -a, "n_iter_ holds numbers from"),
        ("L1LogisticOBACV", "scores_", lambda a: a[:, :1], "scores_ must have the shape"),
        ("LassoOBA", "coef_", lambda a: a[None], r"coef_ must have the shape \(6,\); got \(1, 6\)"),
        ("LassoOBA", "intercept_", lambda a: np.full(1, a), "no single number"),
        ("BoundedClassifier", "dual_gap_", lambda a: a[:2], "dual_gap_ must have the shape"),
        ("ExtremeSoftmaxSGD", "coef_", lambda a: a.T, "coef_ must have the shape"),
        ("ExtremeSoftmaxSGD", "_counts", lambda a: -a, "_counts holds a number below 0"),
        ("ExtremeSoftmaxSGD hashed", "table_", lambda a: a[:-1], r"table_ must have the shape .*got \(63,\)"),
        ("OrdinalOBA", "thresholds_", lambda a: a[::-1], "thresholds_ do not rise"),
        ("OrdinalOBA", "ranks_", np.zeros_like, "ranks_ are no order"),
        ("StabilitySelection", "_counts", lambda a: a + 9, "_counts holds more than _n_halves"),
        ("LPSparseMAPClassifier", "pairs_", lambda a: a + 4, "pairs_ holds numbers from 4 to 7"),
    ],
)
def test_arrays_that_do_not_go_together(name, array, change, why, path):
    saved(name, path)
    with np.load(path, allow_pickle=False) as file:
        changed = change(file[array])
    with_array(path, array, changed)
    refused(path, why)


@pytest.mark.parametrize(
    "name", ["L1LogisticOBA sparsified", "ExtremeSoftmaxSGD sparsified", "LassoOBA sparsified"]
)
@pytest.mark.parametrize(
    "part, value, why",
    [
        ("indices", 6, "has the column index 6"),
        ("indices", -1, "has the column index -1"),
        ("indices", 2**31 - 1, "has the column index 2147483647"),
        ("indptr", -5, "indptr"),
        ("indptr", 10**6, "Last value of index pointer"),
    ],
)
def test_sparse_coefficients_that_would_be_read_out_of_bounds(name, part, value, why, path):
    saved(name, path)
    with np.load(path, allow_pickle=False) as file:
        changed = file[f"coef_.{part}"]
    changed[-1] = value
    with_array(path, f"coef_.{part}", changed)
    refused(path, why)


def test_an_estimator_inside_is_one_of_ours_with_its_parameters(path):
    name = "StabilitySelection of an estimator"
    for change, why in (
        ({"class": "os.system"}, "names the estimator 'os.system', which is none of sparsekit's"),
        ({"parameters": {"alpha": -1.0}}, "'alpha' parameter of BoundedRegressor must be"),
        ({"parameters": {"command": 1}}, "BoundedRegressor has no parameter 'command'"),
        ({"more": 1}, "an incomplete estimator"),
    ):
        saved(name, path)
        with_header(path, lambda h, change=change: h["parameters"]["estimator"]["estimator"].update(change))
        refused(path, why)


def test_an_array_of_another_shape_or_type_than_the_header_says(path):
    for array in (np.zeros((2, 6)), np.zeros((1, 6), "f4"), np.zeros((1, 6), ">f8"), np.zeros((6, 1))):
        saved("L1LogisticOBA", path)
        with_array(path, "coef_", array, told=False)
        refused(path, "by the header|never written")


def test_objects_and_other_types_are_never_read(path):
    class Burst:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was executed",))

    saved("L1LogisticOBA", path)
    original = members(path)
    for array in (np.array([[Burst()]]), np.zeros((1, 6), "c16"), np.zeros(6, "M8[s]"), np.zeros(1, "f8,i4")):
        write(path, {**original, "coef_.npy": npy(array, allow_pickle=True)})
        refused(path, "has a type or a shape that is never written")
    write(path, {**original, "coef_.npy": b"no array at all"})
    refused(path, "'coef_' is no array")
    write(path, {**original, "coef_.npy": npy(np.zeros((1, 6)))[:-1]})
    refused(path, "has 47 bytes")
    flags = bytearray(npy(np.zeros(2, bool)))
    flags[-1] = 2
    write(path, {**original, "classes_.npy": bytes(flags)})
    with_header(path, lambda h: h["arrays"].update(classes_={"dtype": "|b1", "shape": [2]}))
    refused(path, "neither 0 nor 1")
    letters = bytearray(npy(np.array(["a", "b"])))
    letters[-4:] = b"\xff\xff\xff\x7f"
    write(path, {**original, "classes_.npy": bytes(letters)})
    with_header(path, lambda h: h["arrays"].update(classes_={"dtype": "<U1", "shape": [2]}))
    refused(path, "a character that there is not")


def test_missing_and_further_members(path):
    saved("L1LogisticOBA", path)
    original = members(path)
    write(path, {name: part for name, part in original.items() if name != "coef_.npy"})
    refused(path, "lists other arrays than it has: .'coef_'")
    write(path, {**original, "more.npy": npy(np.zeros(3))})
    refused(path, "lists other arrays than it has: .'more'")
    write(path, {**original, "more.npy": npy(np.zeros(3))})
    with_header(path, lambda h: h["arrays"].update(more={"dtype": "<f8", "shape": [3]}))
    refused(path, "nothing refers to its array 'more'")
    write(path, {name: part for name, part in original.items() if name != npz.HEADER})
    refused(path, r"it has no header\.json")
    write(path, original)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("coef_.npy", npy(np.ones((1, 6))))
    refused(path, "two of its members have one name")
    with_header(saved("L1LogisticOBA", path), lambda h: h["attributes"].pop("coef_"))
    refused(path, "lacks coef_|nothing refers")


@pytest.mark.parametrize(
    "change, why",
    [
        (lambda h: h.update(schema="another"), "its schema is 'another'"),
        (lambda h: h.pop("schema"), "its schema is None"),
        (lambda h: h.update(version=2), "its format has version 2, .* reads up to 1: update sparsekit"),
        (lambda h: h.update(version=True), "its version is True"),
        (lambda h: h.update({"class": "os.system"}), "none of sparsekit's estimators"),
        (lambda h: h.update({"class": "LassoOBA"}), "LassoOBA has no parameter"),
        (lambda h: h.update(arrays=[]), "its header lists no arrays"),
        (lambda h: h.update(parameters=None), "it has no parameters"),
        (lambda h: h["parameters"].update(evil=1), "L1LogisticOBA has no parameter 'evil'"),
        (lambda h: h["parameters"].update(C=-1.0), "The 'C' parameter of L1LogisticOBA must be"),
        (lambda h: h["parameters"].update(C={"call": "os.system"}), "a value of the kind 'call'"),
        (lambda h: h["parameters"].update(C={"rule": "Dense"}), "names the factor 'Dense', which is none"),
        (lambda h: h["parameters"].update(C={"array": "coef_"}), "is missing or used twice"),
        (lambda h: h["parameters"].update(C={"tuple": 3}), "must hold a list"),
        (lambda h: h["parameters"].update(C={"dict": [[1, 2, 3]]}), "must hold pairs"),
        (lambda h: h["parameters"].update(C={"dict": [[{"list": []}, 2]]}), "a dict with keys"),
        (lambda h: h["parameters"].update(C={"strings": [1]}), "must hold strings"),
        (lambda h: h["parameters"].update(C={"sparse": {}}), "incomplete sparse matrix"),
        (lambda h: h["parameters"].update(C=[1]), "never written"),
        (lambda h: h["attributes"].update(fit=1), "L1LogisticOBA has no attribute 'fit'"),
        (lambda h: h["attributes"].update(__class__=1), "has no attribute '__class__'"),
        (lambda h: h["attributes"].update(n_features_in_=10**9), "must have the shape .1000000000"),
        (lambda h: h["attributes"].update(n_features_in_=-6), "must be a whole number"),
        (lambda h: h["attributes"].update(coef_=3.0), "must be an array|nothing refers"),
        (lambda h: h["attributes"].update(dual_gap_="small"), "must be a number"),
        (lambda h: h["attributes"].update(feature_names_in_={"strings": ["a"]}), "names_in_ must have"),
        (lambda h: h["attributes"].update(history_={"dict": [[1, 2]]}), "no dict of arrays|nothing refers"),
    ],
)  # fmt: skip
def test_headers(change, why, path):
    with_header(saved("L1LogisticOBA", path), change)
    refused(path, why)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", "[" * 10**5, '{"arrays": ' * 10**5, "1" * 10**5, b"\xed\xa0\x80"]
)
def test_headers_that_are_none(text, path):
    write(path, {npz.HEADER: text})
    refused(path, "")


def test_deep_values(path):
    saved("L1LogisticOBA", path)
    parts = members(path)
    for depth in (10, 400, 490, 900, 10**5):
        deep = b'{"list": [' * depth + b"1" + b"]}" * depth
        write(path, {**parts, npz.HEADER: parts[npz.HEADER].replace(b'"C": 1.0', b'"C": ' + deep)})
        refused(path, "nested too deeply|The 'C' parameter")


@pytest.mark.parametrize(
    "factors",
    [
        {"list": [{"tuple": [{"rule": "Or"}, {"list": [4]}]}]},
        {"list": [{"tuple": [{"rule": "Or"}, {"list": [-1]}]}]},
        {"list": [{"tuple": [{"rule": "Budget"}, {"list": [0]}, "many"]}]},
        {"list": [{"tuple": [{"rule": "Budget"}, {"list": [0]}, 1, {"dict": [["evil", 1]]}]}]},
        {"list": [{"tuple": [{"rule": "Or"}]}]},
        {"list": [3]},
    ],
)
def test_rules_that_are_none(factors, path):
    with_header(saved("LPSparseMAPClassifier", path), lambda h: h["parameters"].update(factors=factors))
    refused(path, "its factors are none: ")


def test_parameters_that_weights_do_not_go_with(path):
    with_header(saved("ExtremeSoftmaxSGD", path), lambda h: h["parameters"].update(hash_bits=6))
    refused(path, "the one that hash_bits=6 asks for")
    with_header(saved("ExtremeSoftmaxSGD hashed", path), lambda h: h["parameters"].update(hash_bits=7))
    refused(path, r"table_ must have the shape \(128,\); got \(64,\)")
    with_header(saved("ExtremeSoftmaxSGD hashed", path), lambda h: h["parameters"].update(hash_bits=None))
    refused(path, "table_")


def test_bombs(path):
    saved("L1LogisticOBA", path)
    refused(path, "more than max_bytes=1000", max_bytes=1000)
    for wrong, error in ((0, ValueError), (-1, ValueError), ("many", TypeError), (1.5, TypeError)):
        with pytest.raises(error, match="max_bytes must be"):
            sk.load(path, max_bytes=wrong)
    parts = members(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        archive.writestr("bomb.npy", npy(np.zeros((1, 3 * 10**6))))
    refused(path, "more than max_bytes", max_bytes=10**7)
    # an array that says that it is large, of which nothing is reserved
    huge = npy(np.zeros((1, 6))).replace(b"(1, 6)", b"(10**9)"[:6])
    write(path, {**parts, "coef_.npy": huge})
    refused(path, "never written")
    said = npy(np.zeros((1, 6))).replace(b"(1, 6), }" + b" " * 12, b"(99999999999, 6), }  ")
    write(path, {**parts, "coef_.npy": said})
    with_header(path, lambda h: h["arrays"].update(coef_={"dtype": "<f8", "shape": [99999999999, 6]}))
    refused(path, "'coef_' of shape .99999999999, 6. has 48 bytes")
    # as many of no bytes as one likes
    none = npy(np.zeros((0, 6))).replace(b"(0, 6), }" + b" " * 18, b"(0, 9999999999999999999), }")
    write(path, {**parts, "coef_.npy": none})
    with_header(path, lambda h: h["arrays"].update(coef_={"dtype": "<f8", "shape": [0, 9999999999999999999]}))
    refused(path, "'coef_' of shape")


def test_files_that_are_none(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        sk.load(path)
    with pytest.raises(IsADirectoryError):
        sk.load(tmp_path)
    for content in (b"", b"a text", b"PK\x05\x06" + bytes(18), b"PK\x03\x04" + bytes(100), b"\x80\x04N."):
        path.write_bytes(content)
        refused(path, "")
    np.savez(path, coef_=np.zeros((1, 6)))
    refused(path, r"it has no header\.json")


@pytest.mark.parametrize(
    "name", ["L1LogisticOBA sparsified", "ExtremeSoftmaxSGD umax", "LPSparseMAPClassifier"]
)
def test_changed_contents_with_right_sums(name, path):
    """Members swapped, and bytes of the header and of arrays changed, in a valid archive."""
    parts, rng = members(saved(name, path)), random.Random(name)
    names, loaded = list(parts), 0
    for _ in range(300):
        changed = dict(parts)
        if rng.random() < 0.2:
            one, other = rng.sample(names, 2)
            changed[one], changed[other] = parts[other], parts[one]
        else:
            one = rng.choice([npz.HEADER, *names])
            content = bytearray(changed[one])
            content[rng.randrange(len(content))] = rng.randrange(256)
            changed[one] = bytes(content)
        write(path, changed)
        try:
            model = sk.load(path)
        except ValueError as error:
            assert "is no model that load takes" in str(error)
            continue
        loaded += 1
        with np.errstate(all="ignore"):
            model.predict(X)  # of other coefficients, but no crash
    assert loaded > 10


@pytest.mark.parametrize("value", [np.array("auto"), np.array(["auto", "x"]), sp.csr_array(np.eye(2)), 1.0])
@pytest.mark.parametrize("rule", [contracts.THRESHOLD, contracts.Word("auto", "expected_f1")])
def test_words_are_no_arrays(rule, value):
    rule.check("threshold_", "auto", {})
    with pytest.raises(ValueError, match=r"^threshold_ must be"):
        rule.check("threshold_", value, {})
