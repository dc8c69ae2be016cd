"""The workflow files: few permissions, pinned actions, wheels for every Python."""

import re
import tomllib

import pytest


@pytest.fixture(scope="module")
def workflows(checkout):
    files = sorted((checkout / ".github" / "workflows").glob("*.yml"))
    assert {file.name for file in files} == {"release.yml", "tests.yml", "weekly.yml", "wheels.yml"}
    return files


def test_permissions_are_few_and_actions_are_pinned(workflows):
    for file in workflows:
        text = file.read_text()
        assert re.search(r"^permissions:\n  contents: read$", text, re.MULTILINE), file.name
        assert ("id-token: write" in text) == (file.name == "release.yml")
        assert not re.search(r"secrets\.|password:|write-all", text)
        for action in re.findall(r"uses: (\S+)", text):
            assert re.search(r"^\./|@(v\d[\d.]*|release/v\d+|[0-9a-f]{40})$", action), action


def test_wheels_are_built_for_every_documented_python(checkout):
    pyproject = tomllib.loads((checkout / "pyproject.toml").read_text())
    lowest = int(pyproject["project"]["requires-python"].removeprefix(">=3."))
    build = pyproject["tool"]["cibuildwheel"]["build"].split()
    assert {f"cp3{minor}-*" for minor in range(lowest, 15)} | {"cp314t-*"} == set(build)
