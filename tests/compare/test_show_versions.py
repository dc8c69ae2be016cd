"""show_versions, and the command that calls it."""

import importlib.metadata
import platform
import re

import numpy as np
import pytest

import sparsekit
from sparsekit._compare import cli as _cli
from sparsekit._compare import show_versions as _show_versions


def sections(text):
    """{title: {name: value}} of what was printed."""
    found = {}
    for block in text.strip().split("\n\n"):
        title, *rows = block.splitlines()
        found[title.rstrip(":")] = dict(row.strip().split(": ", 1) for row in rows)
    return found


@pytest.fixture
def printed(capsys):
    assert sparsekit.show_versions() is None
    return sections(capsys.readouterr().out)


def test_versions_are_those_of_what_is_installed(printed):
    assert printed["System"]["python"].startswith(platform.python_version())
    packages = printed["Packages"]
    assert set(packages) == {"sparsekit", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl"}
    assert packages["numpy"] == np.__version__ and packages["sparsekit"] == sparsekit.__version__
    optional = printed["Optional packages"]
    peers = {"liblinear-official", "skglm", "celer", "glum", "pandas", "pyarrow"}
    assert set(optional) == {"torch", "matplotlib", "cupy-cuda12x"} | peers
    for name, version in optional.items():
        installed = [d.version for d in importlib.metadata.distributions(name=name)]
        assert version in installed or (version == "None" and not installed)


def test_cupy_is_found_under_its_other_names(monkeypatch):
    plain = _show_versions._versions(("gpu",))
    monkeypatch.setattr(_show_versions, "_version", {"cupy-cuda13x": "14.2.0"}.get)
    found = _show_versions._versions(("gpu",))
    assert found == {**dict.fromkeys(plain), "cupy-cuda13x": "14.2.0"}


def test_a_missing_package_is_none():
    assert _show_versions._version("no-such-package-here") is None


def test_kernels_and_threads(printed):
    kernels = printed["Kernels"]
    assert re.fullmatch(r".*_dense\..*(so|pyd)", kernels["compiled file"])
    assert kernels["OpenMP"] in ("yes", "no")
    level, there = re.fullmatch(
        r"(\S+) \(of (.*); SPARSEKIT_SIMD sets the highest\)", kernels["SIMD level"]
    ).groups()
    assert level in there.split(", ")
    assert int(kernels["threads with n_jobs=-1"]) >= 1
    assert printed["Thread pool 1"]["user_api"] in ("blas", "openmp")


@pytest.mark.parametrize(
    "code, expected", [(b"\x7fELF GOMP_parallel", "yes"), (b"\x7fELF", "no"), (b"MZ _vcomp_fork", "yes")]
)
def test_what_the_compiled_file_shows(monkeypatch, tmp_path, code, expected):
    from sparsekit._cython.shared import _dense

    path = tmp_path / "_dense.so"
    path.write_bytes(code)
    monkeypatch.setattr(_dense, "__file__", str(path))
    assert _show_versions._kernels()["OpenMP"] == expected


def test_no_optional_package_is_imported(run_python):
    code = (
        "import sys, sparsekit\n"
        "sparsekit.show_versions()\n"
        "assert not {'torch', 'matplotlib', 'cupy', 'skglm', 'celer', 'glum', 'numba'} & set(sys.modules)"
    )
    assert "Optional packages:" in run_python(code)


def test_the_command_prints_the_same(capsys):
    assert _cli.main(["versions"]) == 0
    assert set(sections(capsys.readouterr().out)) >= {"System", "Packages", "Kernels"}
