"""The architecture: floors, wings, the ties between them, and no circle."""

import re

import pytest
from source_imports import circles, imports, module_name, python_files

# Floors, lowest first. A module may import from its own floor and from those below.
KERNELS, PIECES, LOSSES, SOLVERS, ESTIMATORS, TOOLS = range(6)
FLOORS = {
    "_cython": KERNELS,
    "gpu": KERNELS,
    "_typing": KERNELS,  # aliases for signatures on any floor
    "_arrays": KERNELS,  # where an array lives
    "_messages": KERNELS,  # values in errors and warnings
    "_docstrings": KERNELS,  # entries that docstrings share
    "_linalg": PIECES,
    "_row_blocks": PIECES,
    "_solver": PIECES,  # how runs go on and end
    "_storage": PIECES,  # files that are written whole
    # programs over estimators
    "_compare": TOOLS,
    "__main__": TOOLS,
}
# The wings, one a system, and their folders, which are the layers.
WINGS = ("_l1", "_bounded", "_fenchel_young", "_extreme", "_factor_graph", "_tagger", "_stability")
ROOMS = {
    "losses": LOSSES,
    "factors": LOSSES,
    "solver": SOLVERS,
    "plan": SOLVERS,
    "graphs": SOLVERS,
    "labels": SOLVERS,
    "paths": ESTIMATORS,
    "estimators": ESTIMATORS,
}


@pytest.fixture(scope="module")
def source(checkout):
    return checkout / "sparsekit"


def floor(module):
    """Floor of ``sparsekit.x.y``; what is in no wing and has no line in FLOORS is above all solvers."""
    parts = module.split(".")
    if len(parts) == 1:
        return ESTIMATORS
    if parts[1] in WINGS:
        return ROOMS[parts[2]] if len(parts) > 2 else LOSSES
    return FLOORS.get(parts[1], ESTIMATORS)


def upward(text, name, is_package=False):
    """Imports of a module that lead to a floor above its own."""
    return [
        target
        for target, _ in imports(text, name, is_package)
        if target.split(".")[0] == "sparsekit" and floor(target) > floor(name)
    ]


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("sparsekit._l1.solver.oba", "from ..losses.losses import LogisticLoss\nimport numpy.linalg", []),
        (
            "sparsekit._l1.solver.oba",
            "from ..estimators.logistic import L1LogisticOBA",
            ["sparsekit._l1.estimators.logistic.L1LogisticOBA"],
        ),
        ("sparsekit._l1.solver.oba", "from ..._estimator import base", ["sparsekit._estimator.base"]),
        ("sparsekit._l1.solver.oba", "def f():\n  import sparsekit._compare as c", ["sparsekit._compare"]),
        ("sparsekit._linalg.dense_design", "from .._cython.l1._model import solve", []),
    ],
)
def test_the_scan_sees_imports_that_go_up(name, text, expected):
    assert upward(text, name) == expected


def test_imports_go_down_only(source):
    edges, wrong = 0, []
    for path in python_files(source):
        name, is_package = module_name(path, source)
        if name == "sparsekit":  # re-exports everything, lazily
            continue
        text = path.read_text(encoding="utf-8")
        edges += sum(target.startswith("sparsekit.") for target, _ in imports(text, name, is_package))
        wrong += [f"{name} imports {target}" for target in upward(text, name, is_package)]
    assert not wrong
    assert edges > 10


def modules_imported(source):
    """{module: modules of the package that it imports}, the package's own ``__init__`` left out."""
    found = {}
    for path in python_files(source):
        name, is_package = module_name(path, source)
        found[name] = [path.read_text(encoding="utf-8"), is_package]
    kernels = {module_name(path, source)[0] for path in source.glob("_cython/*/*.pyx")}
    assert kernels
    names = found.keys() | kernels
    return {
        name: {
            target if target in names else target.rpartition(".")[0]
            for target, _ in imports(text, name, is_package)
            if target.split(".")[0] == "sparsekit"
        }
        for name, (text, is_package) in found.items()
        if name != "sparsekit"
    }


def wing(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in WINGS else None


def test_wings_are_apart_but_for_the_ties_that_the_architecture_names(source, checkout):
    text = (checkout / "doc" / "architecture.md").read_text(encoding="utf-8")
    ties = {tuple(tie) for tie in re.findall(r"^\| `(_\w+)/` to `(_\w+)/` \|", text, re.MULTILINE)}
    found = {
        (wing(name), wing(target))
        for name, targets in modules_imported(source).items()
        for target in targets
        if wing(name) and wing(target) and wing(name) != wing(target)
    }
    assert found == ties and len(ties) == 6


def test_no_module_imports_itself_over_others(source):
    assert circles(modules_imported(source)) == []


def test_nobody_asks_scikit_learn_about_a_matrix_that_may_be_broken(source):
    """`_estimator/validation.py` checks its structure first; a vector may go to `check_array`."""
    seen = 0
    for path in python_files(source):
        name, is_package = module_name(path, source)
        for target, _ in imports(path.read_text(encoding="utf-8"), name, is_package):
            checks = re.search(r"\.(validate_data|check_X_y)$", target)
            seen += checks is not None
            assert not checks or target.startswith("sparsekit._estimator.validation."), f"{name}: {target}"
    assert seen >= 5
