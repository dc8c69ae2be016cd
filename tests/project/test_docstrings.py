"""Docstrings of the public names: their examples run, numpydoc finds no fault.

Sphinx reads them and their links where the documentation is built (.ci/run, with warnings as errors).
"""

import doctest
import importlib
import inspect
import io
import random
import re
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import sparsekit
from sparsekit._bounded.losses.nonsmooth_problems import NonsmoothProblem
from sparsekit._docstrings import shares_entries
from sparsekit._factor_graph.factors.variables import Variable
from sparsekit._factor_graph.graphs.solution import BatchSolution, Gradients, Solution
from sparsekit._l1.paths.path_solver import RegularizationPath

MODULES = ("sparsekit", *(f"sparsekit.{name}" for name in sparsekit._SUBMODULES))
# optional packages that the examples of a module need
NEEDS = {"sparsekit.inspection": "matplotlib", "sparsekit.torch": "torch"}
# what public functions return: read as documentation, made by no user
RETURNED = (BatchSolution, Gradients, NonsmoothProblem, RegularizationPath, Solution, Variable)
# methods that are a way of use by themselves
SHOWN = {
    f"sparsekit.FactorGraph.{name}"
    for name in ("add", "map", "set_scores", "solve", "solve_batch", "variable", "vjp")
}

# What numpydoc must not find: https://numpydoc.readthedocs.io/en/latest/validation.html
ENFORCED = {
    *("GL02", "GL03", "GL05", "GL06", "GL07", "GL09", "GL10"),  # sections: known, in order, without tabs
    *("SS01", "SS02", "SS03", "SS04", "SS06"),  # a summary of one line
    *("PR01", "PR02", "PR03", "PR05", "PR06", "PR07", "PR08", "PR09", "PR10"),  # all parameters, no others
    *("RT01", "RT04", "RT05", "YD01"),  # what comes back
    *("SA02", "SA03", "SA04"),  # what to see also
}
# Not listed: members of losses that only solvers call, modules that forward to a function, classes that users
# only receive.
UNLISTED = re.compile(
    r"Loss\.(derivatives|majorant|behind|problem|slope_range|curvature_weights|dual_value)$"
    r"|torch\.Sparsemax(Loss)?\.forward$"
    rf"|\.({'|'.join(value.__name__ for value in RETURNED)})$"
)
LISTS = {"PR01", "RT01"}


def public_objects():
    """Full name -> object of each public class and function, under the first module that has it."""
    found, seen = {}, set()
    for module in MODULES:
        if module == "sparsekit.torch" and find_spec("torch") is None:
            continue  # test_the_torch_modules_are_there says so
        for name in importlib.import_module(module).__all__:
            value = getattr(importlib.import_module(module), name)
            if name != "__version__" and id(value) not in seen:
                seen.add(id(value))
                found[f"{module}.{name}"] = value
    return found


def members(name, value):
    """Full name -> object of the public methods and properties that a class has from this package."""
    found = {}
    for key in dir(value) if inspect.isclass(value) else ():
        static = inspect.getattr_static(value, key)
        function = inspect.unwrap(static.fget if isinstance(static, property) else getattr(value, key))
        if not key.startswith("_") and getattr(function, "__module__", "").startswith("sparsekit"):
            found[f"{name}.{key}"] = static if isinstance(static, property) else getattr(value, key)
    return found


OBJECTS = public_objects()
MEMBERS = {key: value for name in OBJECTS for key, value in members(name, OBJECTS[name]).items()}
READ = OBJECTS | MEMBERS
for _class in RETURNED:
    _name = f"{_class.__module__}.{_class.__name__}"
    READ |= {_name: _class} | members(_name, _class)


def home(name):
    """The module of a public name: ``sparsekit.torch`` of ``sparsekit.torch.Sparsemax.forward``."""
    return max((module for module in MODULES if name.startswith(f"{module}.")), key=len, default=MODULES[0])


def run_examples(name, value):
    """How many lines of examples a docstring has; an AssertionError if one prints something else."""
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(value) or "", {}, name, None, 0)
    report = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.write)
    assert not outcome.failed, report.getvalue()
    return outcome.attempted


@pytest.fixture
def quiet(monkeypatch, tmp_path, close_figures):
    """An empty folder to work in, pictures that no window shows, and random states that stay as they are."""
    monkeypatch.chdir(tmp_path)
    legacy, plain = np.random.get_state(), random.getstate()  # noqa: NPY002
    yield
    assert random.getstate() == plain
    for before, after in zip(legacy, np.random.get_state(), strict=True):  # noqa: NPY002
        np.testing.assert_array_equal(before, after)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_every_public_object_has_an_example_that_runs(name, quiet):
    needed = NEEDS.get(home(name))
    if needed:
        pytest.importorskip(needed, reason=f"{needed} is not installed: the examples of {home(name)} need it")
    assert run_examples(name, OBJECTS[name]) > 1, f"{name} has no example"


@pytest.mark.parametrize(
    "name", sorted(key for key in MEMBERS if key in SHOWN or ">>>" in (inspect.getdoc(MEMBERS[key]) or ""))
)
def test_the_examples_of_methods_run(name, quiet):
    assert run_examples(name, MEMBERS[name]) > 1, f"{name} has no example"


def test_the_torch_modules_are_there():
    pytest.importorskip("torch", reason="PyTorch is not installed: sparsekit.torch was left out")
    assert any(home(name) == "sparsekit.torch" for name in OBJECTS)


def test_every_way_to_use_a_graph_is_shown():
    assert set(MEMBERS) >= SHOWN


def faults(name):
    """Codes and messages of what numpydoc finds wrong with the docstring of an importable name."""
    validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed")
    return [
        (code, message)
        for code, message in validate.validate(name)["errors"]
        if code in ENFORCED and not (code in LISTS and UNLISTED.search(name))
    ]


def test_numpydoc_finds_no_fault():
    assert [name for name in READ if not inspect.getdoc(READ[name])] == []
    assert {name: found for name in sorted(READ) if (found := faults(name))} == {}


def test_defaults_are_documented_as_the_values_that_a_user_gets():
    """Of a group of parameters the values stand one after the other, or once where they are the same."""
    docscrape = pytest.importorskip("numpydoc.docscrape", reason="numpydoc is not installed")
    wrong = []
    for name, value in READ.items():
        if isinstance(value, property):
            continue
        signature = inspect.signature(value).parameters
        for parameter in docscrape.NumpyDocString(inspect.getdoc(value) or "")["Parameters"]:
            names = [one for one in parameter.name.split(", ") if one in signature]
            given = [signature[one].default for one in names]
            if all(one is inspect.Parameter.empty for one in given):
                continue
            text = parameter.type.partition("default=")[2]
            said = eval(f"[{text}]", dict(vars(np)))
            if said not in (given, given[:1] if len(set(given)) == 1 else given):
                wrong.append(f"{name}: {parameter.name} is {given}, documented as {text or 'nothing'}")
    assert not wrong, "\n".join(wrong)


def test_a_docstring_takes_entries_of_others():
    def source():
        """One.

        Parameters
        ----------
        a, b : int
            Both,

            in two paragraphs.
        c : int
            The next.
        """

    class Target:
        """Two.

        Parameters
        ----------
        {a, b}
            More.
        """

        def method(self):
            """Three.

            {d}

            Parameters
            ----------
            d : {"x", "y"}
                The third.
            """

    shares_entries(source)(Target)
    both = "a, b : int\n    Both,\n\n    in two paragraphs.\n    More."
    assert inspect.getdoc(Target).endswith(f"----------\n{both}")
    assert 'd : {"x", "y"}\n    The third.\n\nParameters' in inspect.getdoc(Target.method)
    other = {"__doc__": "Two.\n\n    {a}\n    "}
    with pytest.raises(KeyError, match="'a'"):
        shares_entries()(type("Other", (), dict(other)))
    with pytest.raises(ValueError, match=r"describes a, b: name all; got \{a\}"):
        shares_entries(source)(type("Other", (), dict(other)))
