"""The documentation: every public name has its page, and the check of the built pages sees what is wrong."""

import ast
import importlib
import importlib.util
import re

import pytest

import sparsekit


def listed_names(text):
    """Full names in the tables of the API's index."""
    module, names = None, []
    for line in text.splitlines():
        if found := re.fullmatch(r"\.\. currentmodule:: ([\w.]+)", line):
            module = found[1]
        elif found := re.fullmatch(r" {3}(\w+)", line):
            names.append(f"{module}.{found[1]}")
    return names


@pytest.mark.parametrize("module", ["", ".datasets", ".inspection", ".metrics", ".optimize", ".torch"])
def test_the_api_pages_are_those_of_the_public_names(checkout, module):
    if module == ".torch":
        pytest.importorskip("torch", reason="the names of sparsekit.torch need PyTorch")
    name = f"sparsekit{module}"
    public = set(importlib.import_module(name).__all__) - {"__version__"}
    if module == ".optimize":  # two of its names are the package's, which have one page
        public -= set(sparsekit.__all__)
    listed = listed_names((checkout / "doc" / "api" / "index.rst").read_text(encoding="utf-8"))
    assert sorted(found for found in listed if found.rpartition(".")[0] == name) == sorted(
        f"{name}.{found}" for found in public
    )


@pytest.fixture
def check_links(checkout):
    spec = importlib.util.spec_from_file_location("check_links", checkout / "doc" / "check_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_that_lead_nowhere_are_found(check_links, tmp_path, capsys):
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "index.html").write_text('<h1 id="top-of-it">API</h1><a href="../index.html">up</a>')
    (tmp_path / "a b.png").write_bytes(b"")
    page = tmp_path / "index.html"
    page.write_text(
        '<a name="old"></a><a href="#old"></a><a href="#"></a><a href="api/"></a>'
        '<a href="api/index.html#top-of-it"></a><img src="a%20b.png"><a href="https://example.org/x"></a>'
    )
    assert not check_links.main(tmp_path) and capsys.readouterr().out == "2 pages, 0 wrong links\n"
    page.write_text(
        '<a href="no.html"></a><a href="#no"></a><a href="api/index.html#no"></a><img src="no.png">'
        '<script src="https://example.org/x.js"></script><link rel="stylesheet" href="//example.org/x.css">'
    )
    assert check_links.main(tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        "index.html: no.html: no such file",
        "index.html: #no: no such anchor on the page",
        "index.html: api/index.html#no: no such anchor on the page",
        "index.html: no.png: no such file",
        "index.html: https://example.org/x.js: is loaded from elsewhere",
        "index.html: //example.org/x.css: is loaded from elsewhere",
        "2 pages, 6 wrong links",
    ]


def test_examples_begin_with_a_summary_for_their_card(checkout):
    """The gallery cuts a summary at the first full stop and where the line ends."""
    for path in (checkout / "examples").glob("*.py"):
        paragraphs = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).split("\n\n")
        assert re.fullmatch(r"[A-Z](?:[^.\n]|\.(?! ))*\.", paragraphs[1]), path.name
