"""The benchmarks take from the package what it has; running them takes minutes, data and peers."""

import ast
import importlib
from importlib.util import find_spec

import pytest


def imported_names(path):
    """(module, name) of every ``from sparsekit... import ...`` of a file, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sparsekit":
            yield from ((node.module, alias.name) for alias in node.names)


def test_what_benchmarks_import_exists(checkout):
    folder = checkout / "benchmarks"
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
    for name, path in paths.items():
        compile(path.read_text(encoding="utf-8"), name, "exec")
    found = {(name, *pair) for name, path in paths.items() for pair in imported_names(path)}
    assert len(found) > 20 and any(name.startswith("benchopt/") for name, *_ in found)
    left_out = {entry for entry in found if entry[1] == "sparsekit.torch" and not find_spec("torch")}
    for file, module, name in sorted(found - left_out):
        home = importlib.import_module(module)
        is_module = hasattr(home, "__path__") and find_spec(f"{module}.{name}")
        assert hasattr(home, name) or is_module, f"benchmarks/{file}: {module} has no {name}"
    if left_out:
        pytest.skip(
            f"{len(left_out)} imports of sparsekit.torch need PyTorch, which is not installed; others exist"
        )
