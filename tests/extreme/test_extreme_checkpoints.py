"""Checkpoints of ExtremeSoftmaxSGD: a run that was broken off goes on with the bits of one that was not."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from blocks_in_memory import ListOfBlocks
from sklearn.datasets import load_digits

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._extreme.estimators.block_rows import RowsOfFit
from sparsekit._extreme.solver import checkpoint as checkpoints
from sparsekit._storage import npz

SETTINGS = {
    "plain": {},
    "ridge": {"method": "implicit", "alpha": 1e-4},
    "hashed": {"hash_bits": 12},
    "umax": {"method": "umax", "alpha": 1e-3, "learning_rate": 0.1},
    "nce": {"method": "nce", "learning_rate": 0.5, "n_negatives": 9},
    "class blocks by noise": {"n_negatives": 3, "noise": "frequency", "alpha": 1e-4},
    "auto": {"learning_rate": "auto"},
    "in order": {"shuffle": False},
    "batches": {"method": "is", "batch_size": 8},
}

ATTRIBUTES = (
    "coef_", "table_", "intercept_", "objective_curve_", "objective_error_curve_", "objective_",
    "objective_error_", "optimality_", "classes_", "learning_rate_", "t_",
)  # fmt: skip


class Killed(BaseException):
    """What a run is broken off by."""


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = sp.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True))
    return ListOfBlocks([X[:400], X[400:1000], X[1000:1400], X[1400:]]), y


def model(**options):
    return ExtremeSoftmaxSGD(**{"learning_rate": 5.0, "max_iter": 4, "random_state": 3, **options})


def broken_off(monkeypatch, after, call):
    """``call()``, killed where the next block after so many would be read."""
    read, left = RowsOfFit.read, itertools.count()

    def fragile(self, numbers):
        for item in read(self, numbers):
            if next(left) == after:
                raise Killed
            yield item

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(RowsOfFit, "read", fragile)
        call()


def same(found, expected):
    for name in ATTRIBUTES:
        assert hasattr(found, name) == hasattr(expected, name)
        if hasattr(expected, name):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found._rng_state == expected._rng_state
    assert getattr(found, "learning_rate_losses_", 0) == getattr(expected, "learning_rate_losses_", 0)


@pytest.mark.parametrize("after", [1, 4, 11])
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.thorough(keep=10)
def test_a_fit_goes_on_with_the_same_bits(digits, tmp_path, monkeypatch, name, after):
    X, y = digits
    path = tmp_path / "run.npz"
    expected = model(**SETTINGS[name]).fit(X, y)
    broken_off(
        monkeypatch,
        after,
        lambda: model(**SETTINGS[name]).fit(X, y, checkpoint=path, checkpoint_interval=0),
    )
    assert path.exists()
    read, blocks = RowsOfFit.read, []

    def counting(self, numbers):
        blocks.extend(numbers)
        return read(self, numbers)

    monkeypatch.setattr(RowsOfFit, "read", counting)
    found = model(**SETTINGS[name]).fit(X, y, checkpoint=str(path), checkpoint_interval=0)
    same(found, expected)
    assert len(blocks) == 16 - after and list(tmp_path.iterdir()) == []


def test_many_classes_in_blocks_go_on_in_their_order(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = ListOfBlocks([rng.random((90, 7)) for _ in range(4)]), np.arange(360) % 300
    options = {"noise": "uniform", "max_iter": 3}
    path = tmp_path / "run.npz"
    broken_off(monkeypatch, 6, lambda: model(**options).fit(X, y, checkpoint=path, checkpoint_interval=0))
    same(model(**options).fit(X, y, checkpoint=path), model(**options).fit(X, y))


@pytest.mark.parametrize("other", [{"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3}, {}])
def test_a_setting_of_one_of_two_runs_distinguishes_them(tmp_path, other):
    mine = {"a": 1, "b": 2}
    path = tmp_path / "run.npz"
    checkpoints.Checkpoint(path, 0.0, {"the parameter": mine}).save({"at": 7}, {"x": np.arange(3)})
    with pytest.raises(ValueError, match=r"another run: the parameter '[abc]' was"):
        checkpoints.Checkpoint(path, 0.0, {"the parameter": other}).load()
    header, arrays = checkpoints.Checkpoint(path, 0.0, {"the parameter": mine}).load()
    assert header["at"] == 7 and arrays.keys() == {"x"}


def test_digests_tell_arrays_apart():
    zeros = np.zeros(4)
    several = [
        [zeros], [zeros.reshape(2, 2)], [zeros.astype(np.float32)], [zeros[:3]], [zeros[:2], zeros[2:]],
        [None], [zeros, None], [None, zeros], [np.array([1, "1"], dtype=object)],
        [np.array(["1", 1], dtype=object)],
    ]  # fmt: skip
    assert len({checkpoints.digest(arrays) for arrays in several}) == len(several)
    assert checkpoints.digest([np.zeros((4, 2))[:, 0]]) == checkpoints.digest([zeros])


@pytest.mark.parametrize("name", ["plain", "ridge", "hashed", "auto"])
def test_a_pass_goes_on_with_the_same_bits(digits, tmp_path, monkeypatch, name):
    X, y = digits
    path = tmp_path / "pass.npz"

    def begun():
        return model(**SETTINGS[name]).partial_fit(X.block(0), y[:400], classes=np.arange(12))

    expected = begun().partial_fit(X, y)
    broken_off(monkeypatch, 2, lambda: begun().partial_fit(X, y, checkpoint=path, checkpoint_interval=0))
    found = begun().partial_fit(X, y, checkpoint=path)
    same(found, expected)
    same(found.partial_fit(X.block(1), y[400:1000]), expected.partial_fit(X.block(1), y[400:1000]))
    assert not path.exists()
    broken_off(monkeypatch, 2, lambda: begun().partial_fit(X, y, checkpoint=path, checkpoint_interval=0))
    with pytest.raises(ValueError, match="rows before' was 400 and is 2797 now"):
        found.partial_fit(X, y, checkpoint=path)


def test_the_file_is_never_half_written(digits, tmp_path, monkeypatch):
    X, y = digits
    path = tmp_path / "run.npz"
    broken_off(monkeypatch, 3, lambda: model().fit(X, y, checkpoint=path, checkpoint_interval=0))
    before = path.read_bytes()

    def full(file, array):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(npz, "_write_array", full)
        model().fit(X, y, checkpoint=path, checkpoint_interval=0)
    assert path.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["run.npz"]
    same(model().fit(X, y, checkpoint=path), model().fit(X, y))


def test_a_checkpoint_of_another_run_is_refused(digits, tmp_path, monkeypatch):
    X, y = digits
    path = tmp_path / "run.npz"
    broken_off(monkeypatch, 5, lambda: model().fit(X, y, checkpoint=path, checkpoint_interval=0))

    def refused(message, X=X, y=y, method="fit", **options):
        with pytest.raises(ValueError, match=message):
            getattr(model(**options), method)(X, y, checkpoint=path)

    refused(r"the parameter 'alpha' was None and is 0\.1 now.*remove the file", alpha=0.1)
    refused("the parameter 'noise' was None and is", noise=np.full(10, 0.1))
    refused("the parameter 'random_state' was 3 and is 4", random_state=4)
    refused("the data's 'y and sample_weight'", y=y[::-1])
    refused("the data's 'blocks'", X=ListOfBlocks(X.matrices[:2] + [sp.vstack(X.matrices[2:], format="csr")]))
    refused(r"the data's 'dtype' was 'float64'", X=ListOfBlocks([A.astype(np.float32) for A in X.matrices]))
    refused("the method 'name' was 'fit' and is 'partial_fit'", method="partial_fit")
    refused("stands in epoch 2, beyond max_iter=1", max_iter=1)
    # what moves no step may differ, and a fit may become longer
    longer = model(max_iter=6, verbose=0, max_time=1000.0, tol=1e-9).fit(X, y, checkpoint=path)
    expected = model(max_iter=6).fit(X, y)
    np.testing.assert_array_equal(longer.coef_, expected.coef_)
    assert longer._rng_state == expected._rng_state
    # of the rows that the shorter run had chosen
    assert len(longer.objective_curve_) == 6
    assert abs(longer.objective_ - expected.objective_) < 4 * expected.objective_error_


def test_files_that_are_no_checkpoint_are_refused(digits, tmp_path, monkeypatch):
    X, y = digits
    path = tmp_path / "run.npz"
    path.write_text("a text")
    with pytest.raises(ValueError, match="is no checkpoint of ExtremeSoftmaxSGD"):
        model().fit(X, y, checkpoint=path)
    assert path.read_text() == "a text"
    npz.write(path, {"schema": checkpoints.SCHEMA, "version": 99}, {})
    with pytest.raises(ValueError, match="is a checkpoint of version 99; this sparsekit reads version 6"):
        model().fit(X, y, checkpoint=path)
    npz.write(path, {"schema": "sparsekit.model", "version": 1}, {})
    with pytest.raises(ValueError, match=r"is no checkpoint .*its schema is 'sparsekit\.model'"):
        model().fit(X, y, checkpoint=path)
    np.savez(path, header=np.array([{"an": "object"}], dtype=object))
    with pytest.raises(ValueError, match="is no checkpoint"):
        model().fit(X, y, checkpoint=path)
    path.unlink()
    broken_off(monkeypatch, 5, lambda: model().fit(X, y, checkpoint=path, checkpoint_interval=0))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="is no checkpoint"):
        model().fit(X, y, checkpoint=path)
    with pytest.raises(TypeError, match="checkpoint must be the path of a file, got int"):
        model().fit(X, y, checkpoint=3)
    for wrong in (-1, np.nan, "1"):
        with pytest.raises(ValueError, match=rf"checkpoint_interval must be a number .* >= 0, got .*{wrong}"):
            model().fit(X, y, checkpoint=path, checkpoint_interval=wrong)


def test_what_ends_early_can_go_on(digits, tmp_path):
    """By the callback or for its time: the file stays, and the next call goes on."""
    X, y = digits
    path = tmp_path / "run.npz"
    model(callback=lambda intermediate_result: intermediate_result.nit == 2).fit(X, y, checkpoint=path)
    assert path.exists()
    same(model().fit(X, y, checkpoint=path), model().fit(X, y))
    # also in the last epoch, since the next call may ask for more
    model(max_iter=2, callback=lambda intermediate_result: intermediate_result.nit == 2).fit(
        X, y, checkpoint=path
    )
    assert path.exists()
    same(model().fit(X, y, checkpoint=path), model().fit(X, y))
    assert model(max_time=1e-9).fit(X, y, checkpoint=path).t_ == 0 and path.exists()
    same(model().fit(X, y, checkpoint=path), model().fit(X, y))
    assert not path.exists()


def test_a_matrix_in_memory_is_one_block(digits, tmp_path, monkeypatch):
    X, y = load_digits(return_X_y=True)
    path = tmp_path / "run.npz"
    expected = model().fit(ListOfBlocks([X / 16]), y)
    broken_off(monkeypatch, 2, lambda: model().fit(X / 16, y, checkpoint=path, checkpoint_interval=0))
    same(model().fit(X / 16, y, checkpoint=path), expected)


def test_checkpoints_are_as_rare_as_was_asked(digits, tmp_path, monkeypatch):
    X, y = digits
    times = []
    save = checkpoints.Checkpoint.save
    monkeypatch.setattr(
        checkpoints.Checkpoint, "save", lambda self, *parts: (times.append(1), save(self, *parts))
    )
    model().fit(X, y, checkpoint=tmp_path / "a.npz")
    assert not times
    model().fit(X, y, checkpoint=tmp_path / "a.npz", checkpoint_interval=0)
    assert len(times) == 16
