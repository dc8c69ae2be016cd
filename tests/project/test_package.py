"""The package as a whole: what it imports and what that costs, its names, what the distributions hold."""

import importlib
import importlib.metadata
import os
import re
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from children import run_limited
from source_imports import imports, module_name, python_files

import sparsekit

# import name -> distribution name where they differ
DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "liblinear": "liblinear-official",
    "cupy": "cupy-cuda12x",
    "cupyx": "cupy-cuda12x",
}
# solvers to compare with that no extra names: source only, or for dense data alone
BY_HAND = {"adelie", "blitzl1", "glmnet", "glmnetrs", "pybiglasso"}


@pytest.fixture(scope="module")
def source(checkout):
    return checkout / "sparsekit"


@pytest.fixture(scope="module")
def project(checkout):
    return tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirement_names(requirements):
    return {re.match(r"[\w.-]+", requirement)[0].lower() for requirement in requirements}


TORCHS = (
    "sparsekit.torch",
    "sparsekit._torch.eager",
    "sparsekit._torch.operators",
    "sparsekit._torch.graph_operators",
)


def test_optional_packages_are_imported_in_functions_only_and_have_an_extra(source, project):
    required = requirement_names(project["dependencies"])
    optional = set().union(*map(requirement_names, project["optional-dependencies"].values()))
    for path in python_files(source):
        name, is_package = module_name(path, source)
        for target, top in imports(path.read_text(encoding="utf-8"), name, is_package):
            root = target.split(".")[0]
            assert name in TORCHS or target not in TORCHS[1:], f"{name} imports {target}, which needs torch"
            if root == "sparsekit" or root in sys.stdlib_module_names:
                continue
            distribution = DISTRIBUTIONS.get(root, root).lower()
            if distribution not in required:
                # these define torch's own classes; nothing of the package imports them, but one another
                own = name in TORCHS and root == "torch"
                assert own or not top, f"{name} imports {root} at module level, which is no dependency"
                assert distribution in optional | BY_HAND, f"{name} imports {root}, which no extra installs"


# Ends the editable installs' rebuild check before anything is watched or timed.
SETTLE = """
import sys
for finder in reversed(sys.meta_path):
    getattr(finder, "_rebuild", lambda: None)()
"""

BLOCK = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(f"No module named {name!r} (blocked)", name=name)

sys.meta_path.insert(0, Blocked())
for name in sys.argv[1:]:
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert "blocked" in str(error)
    else:
        raise SystemExit(f"{name} was not blocked")
"""

USE = """
import numpy as np
import sparsekit
from sklearn.datasets import load_breast_cancer
X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
model = sparsekit.L1LogisticOBA(C=0.1).fit(X, y)
assert model.score(X, y) > 0.95, model.score(X, y)
for name in (*sparsekit.__all__, "datasets", "inspection", "metrics", "optimize"):
    getattr(sparsekit, name)
print("works")
"""


@pytest.mark.parametrize(
    "blocked",
    [
        ["cupy"],
        ["torch"],
        ["matplotlib"],
        [
            "cupy",
            "torch",
            "matplotlib",
            "pandas",
            "skops",
            "liblinear",
            "skglm",
            "celer",
            "glum",
            *sorted(BY_HAND),
        ],
    ],
    ids=" ".join,
)
@pytest.mark.thorough(keep=2)
def test_works_without_optional_packages(run_python, blocked):
    assert run_python(BLOCK + USE, *blocked) == "works\n"


def test_importing_and_fitting_loads_no_optional_package(run_python):
    # what the dependencies load by themselves is their affair
    before = "import sys, sklearn.linear_model, sklearn.datasets\nbefore = set(sys.modules)\n"
    after = "print(sorted({n.split('.')[0] for n in set(sys.modules) - before} & set(sys.argv[1:])))"
    code = before + USE + after
    names = ["cupy", "torch", "matplotlib", "liblinear", "skglm", "celer", "glum", "numba", "Cython"]
    names += sorted(BY_HAND)
    assert run_python(code, *names) == "works\n[]\n"


def test_paths_load_no_cross_validation(run_python):
    code = (
        "import sys, numpy as np\n"
        "from sparsekit import glm_path, l1_logistic_path, lasso_path\n"
        "for path in (lasso_path, l1_logistic_path, glm_path): path(np.eye(4), np.array([0, 1, 0, 1]))\n"
        "print(*(n for n in sys.modules if 'sparsek' in n and ('fold' in n or 'scored' in n or '_cv' in n)))"
    )
    assert run_python(code) == "\n"


def test_import_adds_little_to_scikit_learns_linear_models(run_python):
    """Few modules, none of others: counted, since seconds depend on the machine's load."""
    code = (
        "import sys, sklearn.linear_model\n"
        "before = set(sys.modules)\n"
        "import sparsekit\n"
        "print(len(set(sys.modules) - before))\n"
        "sparsekit.L1LogisticOBA\n"
        "new = sorted(set(sys.modules) - before)\n"
        "print(len(new), *(n for n in new if not n.startswith('sparsekit')))"
    )
    alone, (count, *others) = (line.split() for line in run_python(code).splitlines())
    # `import sparsekit` itself loads no part of it
    assert int(alone[0]) <= 3
    assert int(count) <= 118
    # what Cython's modules share among them
    assert all(n.startswith(("_memoryviews", "_cython")) for n in others), others


WATCH = """
import sys
import sklearn.datasets, sklearn.linear_model, threadpoolctl
threadpoolctl.ThreadpoolController()  # before 3.8 it asks ldconfig where libc is, once
started, before = [], set(sys.modules)

def watch(event, args):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.fork", "os.system"):
        started.append((event, str(args[:1])))
    if event == "open" and str(args[0]).endswith((".so", ".pyd", ".c", ".o")) and "w" in str(args[1] or ""):
        started.append((event, str(args[0])))

sys.addaudithook(watch)
"""


def test_nothing_is_compiled_at_run_time(run_python):
    check = """
loaded = {name.split(".")[0] for name in set(sys.modules) - before}
assert not loaded & {"numba", "llvmlite", "Cython", "pythran", "cffi", "torch"}, loaded
assert not started, started
"""
    # neither a compiler nor anything else to start is on the path
    assert run_python(SETTLE + WATCH + USE + check, env={"PATH": ""}) == "works\n"
    with pytest.raises(pytest.fail.Exception, match=r"subprocess\.Popen"):
        start = "import subprocess\nsubprocess.run([sys.executable, '-c', ''])\n"
        run_python(WATCH + start + check, env={"PATH": ""})


def test_one_version(checkout, project):
    meson = re.search(r"version:\s*'([^']+)'", (checkout / "meson.build").read_text(encoding="utf-8"))[1]
    installed = importlib.metadata.version("sparsekit")
    citation = re.search(
        r"^version: (.+)$", (checkout / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )[1]
    assert {meson, project["version"], installed, citation} == {sparsekit.__version__}


def test_public_names_are_listed_once_and_others_are_errors():
    """Each resolves: tests/project/test_typing.py reads its signature."""
    assert sparsekit.__all__ and len(set(sparsekit.__all__)) == len(sparsekit.__all__)
    assert set(sparsekit.__all__) <= set(dir(sparsekit))
    with pytest.raises(AttributeError, match="no attribute 'L1Logistics'"):
        sparsekit.L1Logistics  # noqa: B018


def test_the_command_is_installed_with_the_package(project):
    (script,) = [
        entry
        for entry in importlib.metadata.distribution("sparsekit").entry_points
        if entry.group == "console_scripts"
    ]
    assert script.name == "sparsekit" and project["scripts"] == {"sparsekit": script.value}
    assert callable(script.load())


def readme_command(checkout, name):
    text = (checkout / "README.md").read_text(encoding="utf-8")
    return re.search(rf"^<!-- command: {name} -->\n```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]


def test_the_readmes_commands_are_what_ci_runs(checkout):
    """.ci/run executes the marked blocks of the README; they must exist and say what the README says."""
    assert "sparsekit compare" in readme_command(checkout, "compare")
    assert readme_command(checkout, "test").rstrip().splitlines()[-1].endswith("pytest")
    script = (checkout / ".ci" / "run").read_text(encoding="utf-8")
    for name in ("compare", "test"):
        assert f"readme_command {name}" in script
    assert os.access(checkout / ".ci" / "run", os.X_OK)


def test_source_distribution_holds_what_a_build_needs(checkout):
    archive = os.environ.get("SPARSEKIT_SDIST")
    if not archive:
        pytest.skip("SPARSEKIT_SDIST names no source distribution; .ci/run builds one and sets it")
    with tarfile.open(archive) as tar:
        names = {str(Path(*Path(name).parts[1:])) for name in tar.getnames()}
    needed = {"pyproject.toml", "meson.build", "LICENSE"}
    needed |= {"README.md", "CHANGELOG.md", "CITATION.cff", "SECURITY.md"}
    for folder, kinds in (
        ("sparsekit", ("py", "pyi", "typed", "pyx", "pxd", "h", "build")),
        ("tests", ("py",)),
        ("examples", ("py",)),
    ):
        for kind in kinds:
            needed |= {str(path.relative_to(checkout)) for path in (checkout / folder).rglob(f"*.{kind}")}
    assert needed <= names
    assert not [name for name in names if name.endswith((".so", ".o", ".pyc", ".npz"))]


def test_the_source_folder_says_that_it_has_no_kernels(source, tmp_path):
    for name in ("__init__.py", "_cython/__init__.py", "_cython/shared/__init__.py"):
        target = tmp_path / "sparsekit" / name
        target.parent.mkdir(exist_ok=True)
        target.write_text((source / name).read_text(encoding="utf-8"))
    # -S: no installed package stands before the folder
    run = run_limited([sys.executable, "-S", "-c", "import sparsekit._cython"], cwd=tmp_path, timeout=120)
    assert run.returncode == 1
    assert "ImportError" in run.stderr and "Install it with `pip install .` in the checkout" in run.stderr


def test_python_in_the_checkout_finds_the_installed_package(checkout, tmp_path):
    """As a reader types README's example: the source folder, first on the path, gives way."""
    names = ("sparsekit", "sparsekit._messages", "sparsekit._cython.shared._runtime")
    code = f"""
import pickle, sys
for name in {names}:
    __import__(name)
    print(sys.modules[name].__file__)
function = sys.modules["sparsekit"].show_versions
assert pickle.loads(pickle.dumps(function)) is function
"""
    # two source folders must not load each other in turn
    (tmp_path / "sparsekit").symlink_to(checkout / "sparsekit", target_is_directory=True)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    run = run_limited([sys.executable, "-c", code], cwd=checkout, env=env, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [importlib.import_module(name).__file__ for name in names]
