"""show_versions, and the command that calls it."""

import importlib.metadata
import re

import pytest

import sparsekit
from sparsekit._compare import cli as _cli
from sparsekit._compare import show_versions as _show_versions


def sections(text):
    """{title: {name: value}} of what this package printed."""
    found = {}
    for block in text[text.index("Packages:") :].strip().split("\n\n"):
        title, *rows = block.splitlines()
        found[title.rstrip(":")] = dict(row.strip().split(": ", 1) for row in rows)
    return found


@pytest.fixture
def printed(capsys):
    assert sparsekit.show_versions() is None
    return sections(capsys.readouterr().out)


def test_versions_are_those_of_what_is_installed(capsys):
    sparsekit.show_versions()
    out = capsys.readouterr().out
    packages = sections(out)["Packages"]
    assert packages["sparsekit"] == sparsekit.__version__
    for name, version in packages.items():
        installed = [d.version for d in importlib.metadata.distributions(name=name)]
        assert version in installed or (version == "None" and not installed)
    # all that the package requires, and its extras but for tests and documentation; some by scikit-learn
    for line in importlib.metadata.requires("sparsekit"):
        name, extra = re.match(r"[\w-]+", line)[0], re.search(r"extra == ['\"](\w+)", line)
        if extra is None or extra[1] in ("gpu", "torch", "plot", "compare"):
            name = name.replace("scikit-learn", "sklearn")
            assert re.search(rf"^ *{name}: ", out, re.MULTILINE), line


def test_kernels_and_threads(printed):
    kernels = printed["Kernels"]
    assert re.fullmatch(r".*_dense\..*(so|pyd)", kernels["compiled file"])
    assert kernels["OpenMP"] in ("yes", "no")
    level, there = re.fullmatch(
        r"(\S+) \(of (.*); SPARSEKIT_SIMD sets the highest\)", kernels["SIMD level"]
    ).groups()
    assert level in there.split(", ")
    assert int(kernels["threads with n_jobs=-1"]) >= 1


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
    assert "Kernels:" in run_python(code)


def test_the_command_prints_the_same(capsys):
    assert _cli.main(["versions"]) == 0
    assert set(sections(capsys.readouterr().out)) >= {"Packages", "Kernels"}
