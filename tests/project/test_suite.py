"""How the tests themselves are run: covering arrays, each apart from the others, no wait without a limit."""

import ast
import itertools
import os
import signal
import sys
from pathlib import Path

import pytest
import selection
from children import run_limited
from isolation import Isolation

TESTS = Path(__file__).resolve().parent.parent


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
