"""CHANGELOG.md begins with the version that is being made, and names what it has."""

import re

import sparsekit


def test_it_begins_with_this_version(checkout):
    release, _, development = sparsekit.__version__.partition(".dev")
    heading = re.search(r"^## (.*)$", (checkout / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[
        1
    ]
    date = "unreleased" if development else r"20\d\d-\d\d-\d\d"
    assert re.fullmatch(rf"{re.escape(release)} \({date}\)", heading)


def test_it_names_every_public_name(checkout):
    text = (checkout / "CHANGELOG.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:sparsekit\.)?(\w+)", text))
    twins = {name for name in sparsekit.__all__ if name.endswith("CV")}
    assert set(sparsekit.__all__) - {"__version__"} - twins <= named
    assert {*sparsekit._SUBMODULES, *sparsekit.inspection.__all__, *sparsekit.metrics.__all__} <= named
