"""The stand-in for CuPy has no name and no parameter that the real one lacks."""

import json
import os
import sys
from pathlib import Path

import pytest
from children import run_limited

HERE = Path(__file__).resolve().parent
SCRIPT = (HERE / "emulated_signatures.py").read_text(encoding="utf-8")

# the emulation's own module, and what CuPy makes when it is first asked for
ITS_OWN = {"cupy.emulation", "cupy.random.Generator"}


@pytest.fixture(scope="module")
def described():
    """Names with parameters of the stand-in and of the installed CuPy."""

    def ask(*first):
        path = os.pathsep.join([*first, os.environ.get("PYTHONPATH", "")])
        done = run_limited(
            [sys.executable, "-P", "-c", SCRIPT], env={**os.environ, "PYTHONPATH": path}, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    real = ask()
    if "absent" in real:
        pytest.skip(f"CuPy is not installed: {real['absent']}")
    if not real["version"].startswith("14."):
        pytest.skip(f"the stand-in is modelled on CuPy 14, installed is {real['version']}")
    return ask(str(HERE / "emulated")), real


def test_no_stand_in_is_left_where_no_test_asked_for_it():
    for name in ("cupy", "cupyx"):
        assert not str(getattr(sys.modules.get(name), "__file__", "")).startswith(str(HERE))
    assert str(HERE / "emulated") not in sys.path


def test_every_name_of_the_stand_in_is_cupys(described):
    emulated, real = described
    assert "cupy.add" in emulated["names"] and len(emulated["names"]) > 300
    assert set(emulated["names"]) - set(real["names"]) <= ITS_OWN


def test_every_function_takes_cupys_parameters(described):
    emulated, real = described
    differing = {
        name: (parameters, real["names"][name])
        for name, parameters in emulated["names"].items()
        if name not in ITS_OWN and parameters != real["names"][name]
    }
    assert not differing, differing
