"""The stand-in for CuPy has no name and no parameter that the real one lacks."""

import json
import os
import sys
from pathlib import Path

import pytest
from children import run_limited

HERE = Path(__file__).resolve().parent
# prints which names the ``cupy`` on the path has, and with which parameters where Python knows them
SCRIPT = """
import inspect, json
try:
    import cupy, cupyx, cupyx.scipy.sparse as sparse
except ImportError as error:
    print(json.dumps({"absent": str(error)}))
    raise SystemExit
cuda, names = cupy.cuda, {}
for owner in (cupy, cupy.linalg, cupy.random, cuda, cuda.runtime, cupyx, sparse, cupy.ndarray, cuda.Device,
              cuda.Event, cupy.RawModule, sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix):
    for name in dir(owner):
        # not getattr for all: some attributes load a CUDA library when they are asked for
        value = inspect.getattr_static(owner, name, None)
        if name.startswith("_") or value is None or inspect.ismodule(value):
            continue
        known = None
        if callable(value) and not isinstance(value, (type, cupy.ufunc)):
            try:
                known = [f"{p.name}={getattr(p.default, '__name__', p.default)!r}, {p.kind == p.KEYWORD_ONLY}"
                         for p in inspect.signature(value).parameters.values()]
            except ValueError:  # compiled
                pass
        names[owner.__name__.replace("cupy_backends.cuda.api", "cupy.cuda") + "." + name] = known
print(json.dumps({"version": cupy.__version__, "names": names}))
"""
# what CuPy makes when it is first asked for
ITS_OWN = {"cupy.random.Generator"}


def test_no_stand_in_is_left_where_no_test_asked_for_it():
    for name in ("cupy", "cupyx"):
        assert not str(getattr(sys.modules.get(name), "__file__", "")).startswith(str(HERE))
    assert str(HERE / "emulated") not in sys.path


def test_every_name_and_parameter_of_the_stand_in_is_cupys():
    def ask(*first):
        path = os.pathsep.join([*first, os.environ.get("PYTHONPATH", "")])
        env = {**os.environ, "PYTHONPATH": path}
        done = run_limited([sys.executable, "-P", "-c", SCRIPT], env=env, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    emulated = ask(str(HERE / "emulated"))["names"]
    assert "cupy.add" in emulated and len(emulated) > 250
    real = ask()
    if "absent" in real:
        pytest.skip(f"CuPy is not installed: {real['absent']}")
    if not real["version"].startswith("14."):
        pytest.skip(f"the stand-in is modelled on CuPy 14, installed is {real['version']}")
    assert emulated.keys() - real["names"].keys() <= ITS_OWN
    shared = {name: known for name, known in emulated.items() if real["names"].get(name) is not None}
    assert {name: known for name, known in shared.items() if known != real["names"][name]} == {}
