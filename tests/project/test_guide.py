"""The guide's pages: their Python runs as printed, and their formulas are read everywhere."""

import ast
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


def without_torch(blocks):
    """The blocks that neither import torch nor use a name that only such a block gives."""
    kept, missing = [], set()
    for code in blocks:
        nodes = list(ast.walk(ast.parse(code)))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        given = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        given |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        modules = set()
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                given |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
                modules |= {getattr(node, "module", None) or alias.name for alias in node.names}
        used = {node.id for node in names if isinstance(node.ctx, ast.Load)} - given
        if used & missing or any("torch" in module.split(".") for module in modules):
            missing |= given
        else:
            missing -= given
            kept.append(code)
    return kept


def test_blocks_that_need_a_left_out_block_are_left_out():
    imports, uses, gives = "from sparsekit.torch import A\nx = A()", "print(x.y)", "x = 1"
    assert without_torch([gives, uses, imports, uses, gives, uses]) == [gives, uses, gives, uses]
    assert without_torch(["import torch.nn", "y = torch.nn", "import os", "def f():\n    y"]) == ["import os"]


@pytest.mark.parametrize("name", GUIDE)
def test_the_examples_run(checkout, name, tmp_path, monkeypatch, close_figures):
    """One after the other in one namespace, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    blocks, names = programs(page(checkout, name)), {"__name__": "guide"}
    runnable = blocks if find_spec("torch") else without_torch(blocks)
    for code in runnable:
        if "l1_ratio=1, solver" in code and LogisticRegression().get_params()["penalty"] != "deprecated":
            # as the page says: before scikit-learn 1.8 an L1 penalty had another name
            code = code.replace("l1_ratio=1, solver", 'penalty="l1", solver')
        exec(compile(code, f"{name}.md, block {blocks.index(code) + 1}", "exec"), names)
    if runnable != blocks:
        left_out = len(blocks) - len(runnable)
        pytest.skip(f"{left_out} blocks of {name}.md need PyTorch, which is not installed; the others ran")


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
