"""The guide's pages: their Python runs as printed, and their formulas are read everywhere."""

import re
from importlib.util import find_spec

import pytest
from sklearn.linear_model import LogisticRegression

GUIDE = [
    "choose_a_model",
    "tune",
    "explain",
    "l1_models",
    "nqn",
    "bounded",
    "sparsemax",
    "extreme_softmax",
    "lp_sparsemap",
    "sequence_tagger",
    "large_data",
    "saved_models",
    "coming_from",
    "glossary",
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
    names = {"__name__": "guide"}
    for number, code in enumerate(programs(page(checkout, name)), start=1):
        if "l1_ratio=1, solver" in code and LogisticRegression().get_params()["penalty"] != "deprecated":
            # as the page says: before scikit-learn 1.8 an L1 penalty had another name
            code = code.replace("l1_ratio=1, solver", 'penalty="l1", solver')
        if "import torch\n" in code and not find_spec("torch"):
            pytest.skip(f"{name}.md needs PyTorch from block {number} on, which is not installed; others ran")
        exec(compile(code, f"{name}.md, block {number}", "exec"), names)


def test_the_documented_loss_converges(checkout, run_python):
    (code,) = re.findall(
        r"^<!-- example: own loss -->\n```python\n(.*?)^```",
        page(checkout, "l1_models"),
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
