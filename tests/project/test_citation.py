"""CITATION.cff says how to cite the package and the papers that it implements."""

import re
import tomllib

import pytest

REQUIRED = {"cff-version": "1.2.0", "message": r".+", "title": "sparsekit", "authors": ""}


@pytest.fixture
def text(checkout):
    return (checkout / "CITATION.cff").read_text(encoding="utf-8")


def test_it_has_what_the_format_requires(text):
    """The top level by lines, since the tests need no YAML reader."""
    top = dict(re.findall(r"^([\w-]+):[ ]?(.*)$", text, re.MULTILINE))
    for key, value in REQUIRED.items():
        assert re.fullmatch(value, top[key]), key
    assert "\t" not in text and top["license"] == "BSD-3-Clause"


def test_the_repository_has_one_address(checkout, text):
    """Each file that a reader may start from names it."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project["urls"]["Repository"]
    assert f"\nrepository-code: {address}\n" in text
    assert f"`git clone {address}`" in (checkout / "README.md").read_text(encoding="utf-8")


def test_each_reference_has_a_type_a_title_and_authors(text):
    head, *references = re.split(r"^  - (?=type: )", text.partition("\nreferences:\n")[2], flags=re.MULTILINE)
    assert not head.strip().startswith("-") and references
    for reference in references:
        assert re.match(r"type: (article|thesis|report|conference-paper)\n    ", reference)
        assert re.search(r"^    title: .+", reference, re.MULTILINE)
        assert re.search(
            r"^    authors:\n      - \{family-names: [^,]+, given-names: .+\}$", reference, re.MULTILINE
        )
    dois = re.findall(r"^    doi: (.+)$", text, re.MULTILINE)
    assert dois and all(re.fullmatch(r"10\.\d{4,}/[\w.]+", doi) for doi in dois)
