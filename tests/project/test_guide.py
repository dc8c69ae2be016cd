"""The guide's pages: their Python runs as printed, and pages of one kind have one form."""

import re
from importlib.util import find_spec

import pytest
from sklearn.linear_model import LogisticRegression

HEADINGS = [
    "What problem it solves",
    "Which estimator when",
    "Objective",
    "The algorithm in ten lines",
    "Cost",
    "Limits",
    "Paper",
]
SYSTEMS = [
    "solver",
    "nqn",
    "bounded",
    "sparsemax",
    "extreme_softmax",
    "lp_sparsemap",
    "sequence_tagger",
    "sharpness",
]
GUIDE = [
    *SYSTEMS,
    "large_data",
    "saved_models",
    "user_guide",
    "which_solver",
    "coming_from",
    "architecture",
    "contributing",
]
# blocks that say of themselves that they are no program of their own
FRAGMENT = "<!-- fragment -->"


def page(checkout, name):
    return (checkout / "doc" / f"{name}.md").read_text(encoding="utf-8")


def programs(text):
    """Python blocks of a page that are not marked as fragments."""
    pattern = re.compile(rf"^({re.escape(FRAGMENT)}\n)?```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [code for marked, code in pattern.findall(text) if not marked]


@pytest.mark.parametrize("name", GUIDE)
def test_the_examples_run(checkout, name, tmp_path, monkeypatch, close_figures):
    """One after the other in one namespace, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    left_out, names = 0, {"__name__": "guide"}
    for number, code in enumerate(programs(page(checkout, name)), 1):
        if re.search(r"^(import|from) torch|sparsekit\.torch", code, re.MULTILINE) and not find_spec("torch"):
            left_out += 1
            continue
        if "l1_ratio=1, solver" in code and LogisticRegression().get_params()["penalty"] != "deprecated":
            # as the page says: before scikit-learn 1.8 an L1 penalty had another name
            code = code.replace("l1_ratio=1, solver", 'penalty="l1", solver')
        exec(compile(code, f"{name}.md, block {number}", "exec"), names)
    if left_out:
        pytest.skip(f"{left_out} blocks of {name}.md need PyTorch, which is not installed; the others ran")


@pytest.mark.parametrize("name", SYSTEMS)
def test_pages_of_systems_have_one_form(checkout, name):
    text = page(checkout, name)
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[: len(HEADINGS)] == HEADINGS
    algorithm = text.split("## The algorithm in ten lines")[1].split("\n## ")[0]
    lines = [int(number) for number in re.findall(r"^(\d+)\. ", algorithm, re.MULTILINE)]
    assert lines == list(range(1, len(lines) + 1)) and 1 < len(lines) <= 10


def test_the_documented_loss_converges(checkout, run_python):
    (code,) = re.findall(
        r"^<!-- example: own loss -->\n```python\n(.*?)^```",
        page(checkout, "solver"),
        re.MULTILINE | re.DOTALL,
    )
    assert run_python(code).startswith("Converged")


@pytest.mark.parametrize("name", GUIDE)
def test_formulas_are_read_everywhere(checkout, name):
    """GitHub and MyST read formulas before or after Markdown's own signs; these forms survive both."""
    text = re.sub(r"^```.*?^```", "", page(checkout, name), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    blocks = re.findall(r"\$\$(.*?)\$\$", text, re.DOTALL)
    inline = re.findall(r"\$([^$]+)\$", re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL))
    assert text.count("$") == 4 * len(blocks) + 2 * len(inline)
    for formula in (*blocks, *inline):
        # a backslash before a punctuation mark is Markdown's escape, a * its emphasis, a | a table's column
        assert not re.search(r"\\[^A-Za-z\s]|\*|\|", formula), formula
        assert formula.count("{") == formula.count("}"), formula
    for formula in inline:
        assert "\n" not in formula and formula == formula.strip(), formula


def test_benchmark_pages_begin_with_machine_and_command(checkout):
    pages = sorted((checkout / "doc").glob("*benchmarks.md"))
    assert len(pages) >= 6
    for path in pages:
        lines = path.read_text(encoding="utf-8").splitlines()
        head = lines[2:8]
        assert head[0] == "| measured | |" and head[1] == "| --- | --- |", path.name
        rows = [line.split("|")[1].strip() for line in head[2:]]
        assert rows[:3] == ["machine", "command", "date"], path.name
        assert "two" in head[2] and "python benchmarks/" in head[3], path.name
