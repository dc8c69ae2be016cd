"""The documentation: every public name has its page, every example a summary."""

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
    package = importlib.import_module(name)
    public = set(package.__all__) - {"__version__"}
    # two names of one class have one page
    public = {found for found in public if getattr(getattr(package, found), "__name__", found) == found}
    if module == ".optimize":  # two of its names are the package's, which have one page
        public -= set(sparsekit.__all__)
    listed = listed_names((checkout / "doc" / "api" / "index.rst").read_text(encoding="utf-8"))
    assert sorted(found for found in listed if found.rpartition(".")[0] == name) == sorted(
        f"{name}.{found}" for found in public
    )


def test_examples_begin_with_a_summary_for_their_card(checkout):
    """The gallery cuts a summary at the first full stop and where the line ends."""
    for path in (checkout / "examples").glob("*.py"):
        paragraphs = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).split("\n\n")
        assert re.fullmatch(r"[A-Z](?:[^.\n]|\.(?! ))*\.", paragraphs[1]), path.name
