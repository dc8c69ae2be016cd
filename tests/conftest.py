"""Shared fixtures, the guard that the installed package is what gets tested, and how the tests are run.

It sets the order of the tests and the number of processes, and isolates each test from the others.
"""

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from unittest import mock

import fuzz_budget
import order
import processes
import pytest
import selection
from children import run_limited
from isolation import EMULATED, Isolation

CHECKOUT = Path(__file__).resolve().parent.parent


# `python -m pytest` puts the working directory first on the path, and with it the checkout's folder
# `sparsekit`, which has no compiled kernels. What is installed must be found instead.
# What tests start must find it as well, from other folders.
def _elsewhere(entries):
    return [entry for entry in entries if Path(entry or os.curdir).resolve() != CHECKOUT]


sys.path[:] = _elsewhere(sys.path)
if os.environ.get("PYTHONPATH"):
    os.environ["PYTHONPATH"] = os.pathsep.join(
        os.path.abspath(entry) for entry in _elsewhere(os.environ["PYTHONPATH"].split(os.pathsep))
    )

# Dask's workers inspect the frames of running threads for a profile that nobody reads. With Python 3.11 that
# crashes once in a while (dask/distributed#8163, python/cpython#111363). Dask reads this when it is imported.
os.environ["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] = "False"

from hypothesis import HealthCheck, settings  # noqa: E402  (the path comes first)

# The same examples on every run: a red run can be repeated. HYPOTHESIS_PROFILE=explore draws new ones.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile(
    "explore", deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow]
)
# draws of the fuzzers alone (tests/fuzz), whose number and seeds are fuzz_budget.py's
settings.register_profile("night", settings.get_profile("explore"))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def _installed_package_problem():
    """What is wrong with the sparsekit that Python finds, or None."""
    try:
        import sparsekit
    except ModuleNotFoundError as error:
        if error.name != "sparsekit":
            raise
        return 'sparsekit is not installed; from the checkout: pip install ".[test]"'
    found = Path(sparsekit.__file__).resolve()
    editable = type(sparsekit.__spec__.loader).__module__ == "_sparsekit_editable_loader"
    if found.is_relative_to(CHECKOUT / "sparsekit") and not editable:
        return f"the tests would run the checkout's folder {found.parent} and not the installed package"
    kernel = importlib.util.find_spec("sparsekit._cython.shared._sparse")
    if kernel is None or not isinstance(kernel.loader, importlib.machinery.ExtensionFileLoader):
        return f"{found.parent} has no compiled kernel _cython.shared._sparse"
    return None


def pytest_addoption(parser, pluginmanager):
    order.add_option(parser)
    processes.add_options(parser, pluginmanager)
    selection.add_option(parser)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    return processes.number(config)


def pytest_configure(config):
    problem = _installed_package_problem()
    if problem is not None:
        raise pytest.UsageError(problem)
    order.settle(config)
    selection.register(config)
    fuzz_budget.settle()
    processes.share_processors(config)


def pytest_report_header(config):
    import sparsekit

    return [
        f"sparsekit {sparsekit.__version__} from {Path(sparsekit.__file__).parent}",
        f"{processes.header(config)}, --order={config.option.order}",
        fuzz_budget.header(),
        selection.header(config),
    ]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    order.share_with(node)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    selection.select(config, items)
    order.arrange(config.option.order, items)


@pytest.fixture(autouse=True)
def _nothing_left_behind():
    before = Isolation()
    yield
    left = before.restore()
    if left:
        pytest.fail(f"the test leaves changed: {', '.join(left)}", pytrace=False)


@pytest.fixture
def close_figures(monkeypatch):
    """Pictures that no window shows, and that are closed when the test ends."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    if "matplotlib" in sys.modules:
        sys.modules["matplotlib"].use("Agg")
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def own_environment():
    """Keep the environment: some solvers of others set variables when they are imported.

    In a comparison each has a process of its own.
    """
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture(scope="session")
def checkout():
    """Root of the source tree that holds these tests."""
    return CHECKOUT


def _data_folder():
    """Folder of the real data sets, or None where there is none."""
    named = os.environ.get("SPARSEKIT_DATA")
    if named:
        folder = Path(named)
        if not (folder / "load.py").is_file():
            raise pytest.UsageError(f"SPARSEKIT_DATA={named} is no folder with a load.py")
        return folder
    folder = CHECKOUT.parent / "shared" / "data"
    return folder if (folder / "load.py").is_file() else None


@pytest.fixture(scope="session")
def shared_data():
    """``shared_data(name)`` loads a real data set as a dict, or skips the test with the reason.

    The sets lie in ``../shared/data`` next to the checkout or in the folder that the environment variable
    SPARSEKIT_DATA names. That folder's ``load.py`` reads them (sparse parts as float64 CSR). Each call reads
    anew, so that a test may change what it got.
    """
    folder = _data_folder()

    def load(name):
        if folder is None:
            pytest.skip(
                f"data set {name}: no ../shared/data next to the checkout and SPARSEKIT_DATA is not set"
            )
        if not (folder / f"{name}.npz").is_file():
            pytest.skip(f"data set {name}: {folder} does not hold it")
        spec = importlib.util.spec_from_file_location("_sparsekit_shared_data_load", folder / "load.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.load(name)

    return load


@pytest.fixture
def run_python(tmp_path):
    """``run_python(code, *args)`` runs code in a new interpreter and returns what it printed.

    The working directory is an empty folder, so the installed package is what the child finds too. A child
    that fails fails the test, with the child's own traceback.
    """

    def run(code, *args, env=None, timeout=240):
        done = run_limited(
            [sys.executable, "-c", code, *args],
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            timeout=timeout,
        )
        if done.returncode != 0:
            pytest.fail(
                f"child ended with status {done.returncode}\n{done.stdout}\n{done.stderr}", pytrace=False
            )
        return done.stdout

    return run


@pytest.fixture(scope="session")
def digits():
    """Rows of norm 1 and labels of scikit-learn's digits; the tests do not change them."""
    from sklearn.datasets import load_digits
    from sklearn.preprocessing import normalize

    X, y = load_digits(return_X_y=True)
    return normalize(X), y


def _scaled(load):
    from sklearn import datasets
    from sklearn.preprocessing import scale

    X, y = getattr(datasets, load)(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="session")
def cancer():
    """Scaled columns of scikit-learn's breast cancer set, two classes; the tests do not change them."""
    return _scaled("load_breast_cancer")


@pytest.fixture(scope="session")
def iris():
    """The same of its iris set, three classes."""
    return _scaled("load_iris")


@pytest.fixture(scope="session")
def diabetes():
    """The same of its diabetes set, a regression."""
    return _scaled("load_diabetes")


@pytest.fixture(scope="session")
def many():
    """600 rows of 60 classes, sparse; the tests do not change them."""
    import numpy as np
    import scipy.sparse as sp
    from sklearn.preprocessing import normalize

    rng = np.random.default_rng(0)
    centres = sp.random_array(
        (60, 200), density=0.1, rng=rng, data_sampler=lambda size: rng.random(size) + 0.5
    )
    y = rng.integers(0, 60, 600)
    noise = sp.random_array((600, 200), density=0.03, rng=rng)
    return sp.csr_array(normalize(sp.csr_array(centres.tocsr()[y] + noise))), y


_emulated_modules = {}


def _is_cupy(name):
    return name.split(".")[0] in ("cupy", "cupyx", "cupy_backends")


def _device_cupy():
    """The real CuPy where it finds a device, or why it does not."""
    try:
        import cupy
    except ImportError as error:
        return None, f"cupy cannot be imported: {error}"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return None, f"cupy finds no device: {error}"
    return (cupy, "") if count else (None, "cupy finds no device")


def _forget_kernels():
    compiled = sys.modules.get("sparsekit.gpu.shared._compile")
    if compiled is not None:
        compiled.clear()


@pytest.fixture(scope="module")
def cupy():
    """CuPy on a GPU where there is one, else the stand-in for it in tests/emulator/emulated.

    SPARSEKIT_TEST_GPU=device makes a missing GPU an error, SPARSEKIT_TEST_GPU=emulated leaves a GPU alone.
    The stand-in takes the name ``cupy`` among the modules for as long as the tests of a file run. Only it has
    ``cupy.emulation``, which counts what the device was asked for.
    """
    before = {name: module for name, module in sys.modules.items() if _is_cupy(name)}
    wanted = os.environ.get("SPARSEKIT_TEST_GPU", "")
    device, problem = (None, "") if wanted == "emulated" else _device_cupy()
    if device is not None:
        yield device
        _forget_kernels()
        return
    if wanted == "device":
        pytest.fail(f"SPARSEKIT_TEST_GPU=device, but {problem}")
    for name in [name for name in sys.modules if _is_cupy(name)]:
        del sys.modules[name]
    sys.modules.update(_emulated_modules)
    sys.path.insert(0, str(EMULATED))
    _forget_kernels()
    try:
        import cupy

        yield cupy
    finally:
        _forget_kernels()
        sys.path.remove(str(EMULATED))
        for name in [name for name in sys.modules if _is_cupy(name)]:
            _emulated_modules[name] = sys.modules.pop(name)
        sys.modules.update(before)
