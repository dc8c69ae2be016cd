"""Kernels are in the folder of their wing or in ``shared``; folders use themselves and ``shared`` alone."""

import re

import pytest
from source_imports import circles

SIDES = ("_cython", "gpu")


# modules over the wings
ABOVE = {"_torch", "_compare", "__init__.py"}
INCLUDE = re.compile(r'^\s*(?:#include|cdef extern from) "([^"]+)"', re.MULTILINE)
IMPORT = re.compile(r"^\s*from (\.+)([\w.]*) c?import (.+)$", re.MULTILINE)
NAMED = re.compile(r'(?:kernel_module|OnEachDevice)\(\s*"(\w+)\.(\w+)"')


@pytest.fixture(scope="module")
def source(checkout):
    return checkout / "sparsekit"


def files(source, side, *suffixes):
    found = sorted(path for path in (source / side).rglob("*.*") if path.suffix in suffixes)
    assert found
    return found


def foreign_includes(name, text):
    """Headers that a file ``folder/name`` includes from other folders than its own and shared."""
    allowed = (f"{name.split('/')[0]}/", "shared/")
    return [header for header in INCLUDE.findall(text) if "/" in header and not header.startswith(allowed)]


def foreign_imports(folder, text):
    """Relative imports, out of a module in ``folder``, of another folder but shared."""
    folders = [f"{module}.{names}".split(".") for dots, module, names in IMPORT.findall(text) if dots == ".."]
    return [parts[0] or parts[1] for parts in folders if (parts[0] or parts[1]) not in (folder, "shared")]


def test_the_scans_find_what_they_scan_for():
    text = '#include "l1/a.h"\n#include "shared/b.h"\ncdef extern from "tagger/c.h":\n#include "pair.h"\n'
    assert foreign_includes("tagger/x.h", text) == ["l1/a.h"]
    text = "from ..shared._a cimport b\nfrom ..l1._c import d\nfrom ._e import f\nfrom ..tagger import _g\n"
    assert foreign_imports("bounded", text) == ["l1", "tagger"]


@pytest.mark.parametrize("side", SIDES)
def test_folders_include_and_import_themselves_and_shared(source, side):
    wrong, seen = [], 0
    for path in files(source, side, ".h", ".cuh", ".cu", ".pyx", ".pxd", ".py"):
        if path.parent == source / side:
            continue
        name, text = path.relative_to(source / side).as_posix(), path.read_text(encoding="utf-8")
        seen += len(INCLUDE.findall(text)) + len(IMPORT.findall(text))
        wrong += [f"{name} includes {header}" for header in foreign_includes(name, text)]
        wrong += [f"{name} imports {folder}" for folder in foreign_imports(path.parent.name, text)]
    assert not wrong and seen > 50


@pytest.mark.parametrize("side", [*SIDES, "_scalar"])
def test_no_header_includes_itself_over_others(source, side):
    found = {
        path.relative_to(source / side).as_posix(): set(INCLUDE.findall(path.read_text(encoding="utf-8")))
        for path in files(source, side, ".h", ".cuh")
    }
    assert circles(found) == []


def test_wings_use_the_kernels_of_their_folder_and_shared(source):
    """And what the wings share, ``_linalg`` and the like, those of ``shared`` alone."""
    wrong, used = [], set()
    for path in sorted(source.rglob("*.py")):
        package = path.relative_to(source).parts[0]
        if package in SIDES or not package.startswith("_") or package in ABOVE:
            continue
        text = path.read_text(encoding="utf-8")
        folders = {folder for folder, _ in NAMED.findall(text)}
        folders |= set(re.findall(r"^\s*from \.+(?:_cython|gpu)\.(\w+)", text, re.MULTILINE))
        used |= folders
        wrong += [f"{path.name} uses {folder}" for folder in folders - {"shared", package[1:]}]
    assert not wrong
    assert used >= {"shared", "l1", "bounded", "fenchel_young", "extreme", "factor_graph"}
