"""Every public signature has types, and they say what the code does."""

import ast
import importlib
import inspect
import typing
from importlib.resources import files

import pytest
from sklearn.utils._param_validation import StrOptions

import sparsekit

MODULES = ("datasets", "inspection", "metrics", "optimize", "torch")
ESTIMATORS = [
    getattr(sparsekit, name)
    for name in sparsekit.__all__
    if hasattr(getattr(sparsekit, name), "_parameter_constraints")
]


def members(owner):
    """The functions behind a public function, or behind a class's public methods and properties."""
    if not inspect.isclass(owner):
        return {owner.__name__: owner}
    found = {}
    for cls in reversed(owner.__mro__):
        if not cls.__module__.startswith("sparsekit"):
            continue
        for name, value in vars(cls).items():
            if name.startswith("_") and name != "__init__":
                continue
            value = getattr(value, "fget", None) or getattr(value, "__func__", value)
            value = getattr(value, "fn", value)  # scikit-learn's available_if
            if inspect.isfunction(value):
                found[name] = value
    return {f"{owner.__name__}.{name}": value for name, value in found.items()}


def untyped(owner):
    """Parameters and returns without a type; whether types exist is mypy's to say."""
    missing = []
    for name, function in members(owner).items():
        signature, empty = inspect.signature(function), inspect.Parameter.empty
        missing += [
            f"{name}({key})"
            for key, parameter in signature.parameters.items()
            if parameter.annotation is empty and key not in ("self", "cls")
        ]
        missing += [f"{name} ->"] if signature.return_annotation is empty else []
    return missing


@pytest.mark.parametrize("name", sorted(set(sparsekit.__all__) - {"__version__"}))
def test_public_names_are_typed(name):
    assert not untyped(getattr(sparsekit, name))


@pytest.mark.parametrize("name", MODULES)
def test_public_modules_are_typed(name):
    if name == "torch":
        pytest.importorskip("torch", reason="sparsekit.torch needs PyTorch")
    module = importlib.import_module(f"sparsekit.{name}")
    assert module.__all__
    for public in module.__all__:
        assert not untyped(getattr(module, public))


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_literals_are_the_options_that_are_allowed(cls):
    hints = typing.get_type_hints(cls.__init__)
    assert len(hints) > 3
    for name, rules in cls._parameter_constraints.items():
        hint = hints[name]
        options = set().union(*(rule.options for rule in rules if isinstance(rule, StrOptions)))
        parts = [hint, *typing.get_args(hint)]
        literals = [part for part in parts if typing.get_origin(part) is typing.Literal]
        allowed = {value for part in literals for value in typing.get_args(part)}
        assert str in parts or allowed == options, name
        if None in rules:
            assert hint is typing.Any or type(None) in parts or typing.Any in parts, name


def test_options_of_a_solve_are_those_that_are_known():
    from sparsekit._factor_graph.solver.layout import OPTIONS
    from sparsekit._typing import SolveOptions

    assert list(SolveOptions.__annotations__) == list(OPTIONS)


def test_checkers_see_every_lazy_name(checkout):
    tree = ast.parse((checkout / "sparsekit" / "__init__.py").read_text(encoding="utf-8"))
    blocks = {ast.unparse(node.test): node for node in tree.body if isinstance(node, ast.If)}
    seen = {}
    for node in blocks["TYPE_CHECKING"].body:
        assert isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names:
            assert alias.asname == alias.name  # else checkers take it for private
            seen[alias.name] = node.module
    # else they would believe in any name
    assert [node.name for node in blocks["not TYPE_CHECKING"].body] == ["__getattr__"]
    assert seen == {**sparsekit._EXPORTS, **dict.fromkeys(sparsekit._SUBMODULES)}


def test_types_import_nothing(run_python):
    code = "import sys, sparsekit\nsparsekit.metrics\nassert not {'scipy', 'sklearn'} & set(sys.modules)"
    assert run_python(code) == ""
    code = "import sparsekit, typing\nprint(typing.get_type_hints(sparsekit.L1LogisticOBA.fit)['X'])"
    assert "scipy.sparse" in run_python(code)


def test_the_package_says_that_it_is_typed():
    assert (files("sparsekit") / "py.typed").is_file()


def test_the_example_runs(checkout, run_python):
    example = checkout / "tests" / "project" / "typing_example.py"
    run_python(example.read_text(encoding="utf-8"), env={"MPLBACKEND": "Agg"})
