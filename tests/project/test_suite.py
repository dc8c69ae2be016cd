"""How the tests themselves are run: in any order, each apart from the others, and no wait without a limit."""

import ast
import itertools
import os
import re
import signal
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import order
import processes
import pytest
import selection
from children import INTERRUPTIBLE, Talk, run_limited
from isolation import Isolation

TESTS = Path(__file__).resolve().parent.parent


# The order.


def items():
    return [SimpleNamespace(nodeid=f"{file}.py::test_{i}") for file in "abcdef" for i in range(5)]


def names(items):
    return [item.nodeid for item in items]


def arranged(how):
    some = items()
    order.arrange(how, some)
    return names(some)


def test_orders():
    plain = names(items())
    assert arranged("file") == plain
    assert arranged("reverse") == plain[::-1]
    first, again, other = (arranged(how) for how in ("random:1", "random:1", "random:2"))
    assert first == again != other
    assert sorted(first) == sorted(other) == plain
    for some in (first, other):
        files = [name.split("::")[0] for name in some]
        # a file's tests stay together, since its fixtures live as long as the file
        assert files != sorted(files) and all(len(set(files[i : i + 5])) == 1 for i in range(0, 30, 5))
        assert some[:5] != sorted(some[:5])


def test_a_seed_is_drawn_once_and_a_wrong_order_refused():
    config = SimpleNamespace(option=SimpleNamespace(order="random"))
    order.settle(config)
    drawn = config.option.order
    assert drawn.startswith("random:")
    # pytest-xdist's processes read the command line again; the seed comes to them separately
    node = SimpleNamespace(config=config, workerinput={})
    order.share_with(node)
    worker = SimpleNamespace(option=SimpleNamespace(order="random"), workerinput=node.workerinput)
    order.settle(worker)
    assert worker.option.order == drawn
    for wrong in ("random:", "random:x", "backwards", ""):
        config.option.order = wrong
        with pytest.raises(pytest.UsageError, match="must be file, reverse, random or random:SEED"):
            order.settle(config)


def test_this_run_has_its_order(request):
    """The hook is at work, also in the processes of pytest-xdist."""
    some = names(request.session.items)
    how = request.config.option.order
    files = list(dict.fromkeys(name.split("::")[0] for name in some))
    if how == "file":
        assert files == sorted(files) or request.config.args != request.config.getini("testpaths")
    elif how == "reverse" and request.config.args == request.config.getini("testpaths"):
        assert files == sorted(files, reverse=True)
    assert how in ("file", "reverse") or int(how.partition(":")[2]) >= 0


# The cases.


def test_a_covering_array_has_each_pair_of_values():
    axes = [range(4), range(3), range(3), range(2)]
    cases = list(itertools.product(*axes))
    chosen = [cases[k] for k in selection.covering_array(cases)]
    for (i, first), (j, second) in itertools.combinations(enumerate(axes), 2):
        assert {(case[i], case[j]) for case in chosen} == set(itertools.product(first, second))
    assert len(chosen) <= 16
    # parameters that vary together are one
    given = [{"a": a, "b": b, "shape": (a, b), "same": "x"} for a in (1, 2) for b in (None, "u")]
    assert len(set(selection.independent_axes(given))) == 4
    together = [{"n": 1, "p": "a"}, {"n": 2, "p": "b"}]
    assert selection.independent_axes(together) == [(0,), (1,)]


# The processes.


def test_number_of_processes(monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS", raising=False)
    monkeypatch.setattr(processes, "processors", lambda: 3)
    assert processes.number(SimpleNamespace(args=["tests"])) == 3
    assert processes.number(SimpleNamespace(args=["tests/a.py::test_b"])) == 0
    monkeypatch.setattr(processes, "processors", lambda: 1)
    assert processes.number(SimpleNamespace(args=["tests"])) == 0  # this one
    monkeypatch.setattr(processes, "processors", lambda: 100)
    assert processes.number(SimpleNamespace(args=["tests"])) == processes.MOST
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "5")
    assert processes.number(SimpleNamespace(args=["tests"])) == 5


def test_processes_share_the_processors(monkeypatch):
    wanted = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY")
    monkeypatch.setattr(os, "environ", {"MKL_NUM_THREADS": "7"})
    monkeypatch.setattr(processes, "processors", lambda: 5)
    processes.share_processors(SimpleNamespace(option=SimpleNamespace(tx=[])))
    assert list(os.environ) == ["MKL_NUM_THREADS"]
    processes.share_processors(SimpleNamespace(option=SimpleNamespace(tx=["popen"] * 2)))
    assert [os.environ[name] for name in wanted] == ["2", "2", "7", "PASSIVE"]


# What a test leaves behind.


def test_what_is_left_is_named_and_put_back(tmp_path, monkeypatch):
    numpy, sklearn = pytest.importorskip("numpy"), pytest.importorskip("sklearn")
    folder = os.getcwd()
    before = Isolation()
    os.chdir(tmp_path)
    os.environ["SPARSEKIT_LEFT"] = "1"
    sys.path.append("left")
    numpy.seterr(all="raise")
    sklearn.set_config(assume_finite=True)
    # whoever started the tests may have had it ignored already
    other = signal.SIG_DFL if signal.getsignal(signal.SIGINT) == signal.SIG_IGN else signal.SIG_IGN
    signal.signal(signal.SIGINT, other)
    left = before.restore()
    assert "os.environ (SPARSEKIT_LEFT)" in left and len(left) == 6
    assert "sklearn.get_config() (assume_finite)" in left
    assert os.getcwd() == folder and "SPARSEKIT_LEFT" not in os.environ and "left" not in sys.path
    assert before.restore() == []


def test_the_emulation_is_as_it_was_found(cupy):
    if not hasattr(cupy, "emulation"):
        pytest.skip("there is a GPU, and no emulation")
    seed, first = cupy.emulation.seed, cupy.random.rand(3).get()
    before = Isolation()
    cupy.emulation.seed = 3  # an assignment where a call was meant
    cupy.left = 1
    assert sorted(before.restore()) == ["cupy.emulation.seed", "cupy.left"]
    assert cupy.emulation.seed is seed and not hasattr(cupy, "left")
    cupy.emulation.seed(5)
    order_of_threads = sys.modules["cuda_launch"]._order
    assert order_of_threads["seed"] == 5
    assert before.restore() == []
    assert order_of_threads["seed"] == 0 and cupy.emulation.counts["allocations"] == 0
    assert cupy.random.rand(3).get().tolist() == first.tolist()


# Waits.

WAITS = {"communicate", "wait", "result"}
FIRST_IS_THE_LIMIT = {"wait", "result"}


def without_limit(tree):
    """Calls that wait for a process or a thread, and say not how long at most."""
    found = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        name, owner = call.func.attr, ast.unparse(call.func.value)
        limited = any(keyword.arg == "timeout" for keyword in call.keywords)
        limited = limited or (name in FIRST_IS_THE_LIMIT and bool(call.args))
        starts = owner == "subprocess" and name in ("run", "call", "check_call", "check_output")
        joins = name == "join" and not call.args and not call.keywords
        reads = name in ("readline", "read") and owner.endswith(("stdout", "stderr"))
        if reads or joins or ((starts or name in WAITS) and not limited):
            found.append(f"line {call.lineno}: {ast.unparse(call)[:60]}")
    return found


def test_every_wait_has_a_limit():
    files = sorted(TESTS.rglob("*.py"))
    assert len(files) > 100
    found = {file.name: without_limit(ast.parse(file.read_text(encoding="utf-8"))) for file in files}
    assert {name: calls for name, calls in found.items() if calls} == {}
    some = "subprocess.run(a); p.wait(); t.join(); p.communicate(b); p.stdout.readline(); ','.join(c)"
    some += "; p.stderr.read()"
    assert len(without_limit(ast.parse(some))) == 6


def test_a_child_that_hangs_is_ended_with_what_it_said():
    """The child's own child holds its pipes open, and ends as well."""
    code = (
        "import subprocess, sys; print('at work', flush=True); subprocess.run([sys.executable, '-c', IDLE])"
    )
    code = code.replace("IDLE", repr("import time; time.sleep(600)"))
    with pytest.raises(pytest.fail.Exception, match=r"(?s)not done after 3 s.*at work"):
        run_limited([sys.executable, "-c", code], timeout=3)


def test_a_child_that_says_nothing(monkeypatch):
    def refuse(*args):
        raise OSError(10038, "An operation was attempted on something that is not a socket")

    monkeypatch.setattr("select.select", refuse)  # as Windows does for a pipe
    absent = "import signal; vars(signal).pop('pthread_sigmask', None)\n"  # as there
    monkeypatch.setattr("children.INTERRUPTIBLE", absent + INTERRUPTIBLE)
    with Talk("import time; print('one', flush=True); time.sleep(600)") as child:
        assert child.line(120) == "one"
        with pytest.raises(pytest.fail.Exception, match="no line within 1 s"):
            child.line(1)
        with pytest.raises(pytest.fail.Exception, match="still runs after 1 s"):
            child.status(1)
    with Talk("raise SystemExit(3)") as child, pytest.raises(pytest.fail.Exception, match="status 3"):
        child.line(120)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are Unix's")
def test_a_child_can_be_interrupted_where_pytest_cannot():
    """As under nohup, or in the background of a script: SIGINT is ignored, and its children inherit that."""
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Talk("print(signal.getsignal(signal.SIGINT).__name__, flush=True)") as child:
            assert child.line(120) == "default_int_handler"
    finally:
        signal.signal(signal.SIGINT, old)


HANGS = """
import ctypes, time

def test_in_python():
    time.sleep(600)

def test_that_comes_after():
    pass

def test_in_compiled_code():
    ctypes.PyDLL(None).sleep(600)  # holds the interpreter's lock
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are Unix's")
def test_a_hang_ends_with_a_message(tmp_path):
    """The limits of pyproject.toml, shorter: in Python the test fails, in compiled code the process ends."""
    with open(TESTS.parent / "pyproject.toml", "rb") as file:
        options = tomllib.load(file)["tool"]["pytest"]["ini_options"]
    # signals where there are any: Windows has none, and naming the method leaves it no other
    assert "timeout_method" not in options and options["faulthandler_exit_on_timeout"]
    assert 0 < options["timeout"] < options["faulthandler_timeout"] <= 600
    (tmp_path / "test_hang.py").write_text(HANGS)

    def run(name, *limits):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", name, *limits, tmp_path]
        return run_limited([*command, "-o", "faulthandler_exit_on_timeout=true"], cwd=tmp_path, timeout=200)

    said = run("in_python or after", "--timeout=2", "--timeout-method=signal").stdout
    # pytest-timeout before 2.4 has no parentheses
    assert re.search(r"Timeout \(?>2\.0s", said) and "1 failed, 1 passed" in said
    done = run("compiled", "-o", "faulthandler_timeout=2")
    assert done.returncode == 1
    assert "test_in_compiled_code" in done.stderr and "Timeout (0:00:02)" in done.stderr
