"""CHANGELOG.md begins with the version that is being made."""

import re

import sparsekit


def test_it_begins_with_this_version(checkout):
    release, _, development = sparsekit.__version__.partition(".dev")
    heading = re.search(r"^## (.*)$", (checkout / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[
        1
    ]
    date = "unreleased" if development else r"20\d\d-\d\d-\d\d"
    assert re.fullmatch(rf"{re.escape(release)} \({date}\)", heading)
