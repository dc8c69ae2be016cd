"""``sparsekit.gpu`` has the folders, modules and names of ``sparsekit._cython``, read from its sources.

And its parameters, but for those that a device has no use for: no GPU version accepts what it does not use.

What has no GPU version stands in ``sparsekit.gpu.NOT_HERE`` with the reason.
"""

import ast
import importlib
import importlib.util
import inspect
import re

import pytest

from sparsekit.gpu import NOT_HERE

_HEAD = re.compile(r"^(?P<indent> *)(?:cp?def +class +|class +|def +|cpdef +[\w\[\], :]*?)(?P<name>\w+) *\(")
_CLASS = re.compile(r"^(?:cdef +)?class +(\w+)")
_CONSTANT = re.compile(r"^([A-Z][A-Z0-9_]*) *=")


def parameters(text):
    """Names of the parameters in ``text``, which begins behind the opening bracket of a definition."""
    depth, parts, part = 0, [], ""
    for letter in text:
        if letter == ")" and depth == 0:
            break
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    parts.append(part)
    names = [re.findall(r"\w+", re.sub(r"\[[^\]]*\]", " ", part.partition("=")[0])) for part in parts]
    return [found[-1] for found in names if found and found[-1] != "self"]


def declared(source):
    """Parameters of the public functions, ``name``, and classes and their methods, ``Class.name``."""
    found, owner = {}, None
    lines = re.sub(r"#[^\n]*", "", source).split("\n")
    for number, line in enumerate(lines):
        if line and not line[0].isspace():
            owner = None
        klass, head, constant = _CLASS.match(line), _HEAD.match(line), _CONSTANT.match(line)
        if klass:
            owner = klass.group(1)
            if not owner.startswith("_"):
                found[owner] = None
        elif constant:
            found[constant.group(1)] = None
        elif head:
            name, inside = head.group("name"), len(head.group("indent")) == 4
            made = name in ("__init__", "__cinit__")
            if name.startswith("_") and not (inside and made):
                continue
            taken = parameters("\n".join([line[head.end() :], *lines[number + 1 :]]))
            if not head.group("indent"):
                found[name] = taken
            elif inside and owner and not owner.startswith("_"):
                found[f"{owner}.__init__" if made else f"{owner}.{name}"] = taken
    return found


def on_gpu(module):
    """The module of ``sparsekit.gpu``, or None."""
    for name in (module.partition(".")[0], module):  # the folder first
        if importlib.util.find_spec(f"sparsekit.gpu.{name}") is None:
            return None
    return importlib.import_module(f"sparsekit.gpu.{module}")


def find(module, name):
    out = module
    for part in name.split("."):
        out = getattr(out, part, None)
        if out is None:
            return None
    return out


def taken_by(target):
    """Parameters of a function or method, and those of them that may be left out; none for a property."""
    if isinstance(target, property):
        return [], []
    taken = {name: p for name, p in inspect.signature(target).parameters.items() if name != "self"}
    return list(taken), [name for name, p in taken.items() if p.default is not p.empty]


def has_shared_parameters(target, expected):
    """Whether a GPU version takes some of the parameters, in order, and else none that must be given."""
    taken, optional = taken_by(target)
    own = [name for name in taken if name not in expected]
    shared = [name for name in taken if name in expected]
    return shared == [name for name in expected if name in shared] and set(own) <= set(optional)


def leaves_threads_out(target, expected):
    """Whether a GPU version takes no n_threads, and is called without it by text that hands on ``*threads``.

    So where nothing else is left out, n_threads is the last parameter of the CPU's function.
    """
    taken, _ = taken_by(target)
    left_out = [name for name in expected if name not in taken]
    return "n_threads" not in taken and (left_out != ["n_threads"] or expected[-1] == "n_threads")


def unused(source):
    """Parameters of public functions and of constructors that nothing reads."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and (node.name == "__init__" or not node.name.startswith("_")):
            read = {part.id for line in node.body for part in ast.walk(line) if isinstance(part, ast.Name)}
            is_stub = isinstance(node.body[-1], ast.Raise)
            names = [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
            found += [
                f"{node.name}: {name}"
                for name in names
                if name not in read and name != "self" and not is_stub
            ]
    return found


def test_versions_use_what_they_accept(checkout):
    assert unused("def f(a, n_threads): return a\ndef g(c): raise TypeError(c)") == ["f: n_threads"]
    for path in sorted((checkout / "sparsekit" / "gpu").rglob("*.py")):
        assert unused(path.read_text(encoding="utf-8")) == [], path.name


@pytest.fixture(scope="module")
def sources(checkout):
    files = sorted((checkout / "sparsekit" / "_cython").rglob("*.pyx"))
    assert len(files) > 15
    return {f"{path.parent.name}.{path.stem}": declared(path.read_text(encoding="utf-8")) for path in files}


def test_the_reader_of_sources():
    source = (
        "SIZE = 3\n_hidden = 4\ncdef class _Base:\n    def public(self): pass\n"
        "cdef class Made(_Base):\n    cdef int n\n    def __cinit__(self, const double[:, ::1] X, int n=2):\n"
        "        pass\n    cdef void inner(self): pass\n    def product(self,\n             v):\n"
        "    @property\n    def diag(self):\n        pass\n"
        "def f(const int64_t[::1] indptr, dict rows=dict(a=1, b=(2, 3)),  # a remark (\n"
        "      bint last=False):\n"
        "cdef int g(int a): return a\ndef _h(x): pass\ncpdef double both(double x, y): pass\n"
    )
    assert declared(source) == {
        "SIZE": None, "Made": None, "Made.__init__": ["X", "n"], "Made.product": ["v"], "Made.diag": [],
        "f": ["indptr", "rows", "last"], "both": ["x", "y"],
    }  # fmt: skip


def test_the_indices_of_threads():
    """A GPU version takes all but n_threads, which is last; where it takes less, no text is common."""

    def on_gpu(z, out):
        return z, out

    assert leaves_threads_out(on_gpu, ["z", "out"]) and leaves_threads_out(on_gpu, ["z", "out", "n_threads"])
    assert not leaves_threads_out(on_gpu, ["z", "n_threads", "out"])
    assert leaves_threads_out(on_gpu, ["z", "n_threads", "out", "work"])
    assert not leaves_threads_out(lambda z, n_threads: (z, n_threads), ["z", "n_threads"])


def test_names_and_parameters(sources):
    wrong = []
    for module, names in sources.items():
        there = on_gpu(module)
        for name, expected in names.items():
            key = f"{module}.{name}"
            if key in NOT_HERE or f"{module}.{name.partition('.')[0]}" in NOT_HERE:
                continue
            target = there and find(there, name)
            if target is None:
                wrong.append(f"{key} has no GPU version, and no reason in NOT_HERE")
            elif expected is not None and not has_shared_parameters(target, expected):
                wrong.append(f"{key}({', '.join(taken_by(target)[0])}) must take ({', '.join(expected)})")
            elif expected is not None and not leaves_threads_out(target, expected):
                wrong.append(f"{key} must take no n_threads, and its CPU version take it last")
    assert not wrong, "\n".join(wrong)


def test_reasons_are_of_today(sources):
    known = {f"{module}.{name}" for module, names in sources.items() for name in names}
    for key, reason in NOT_HERE.items():
        assert key in known, f"NOT_HERE names {key}, which sparsekit._cython has not"
        wing, kernels, name = key.split(".", 2)
        there = on_gpu(f"{wing}.{kernels}")
        assert there is None or find(there, name) is None, f"{key} has a GPU version and a reason in NOT_HERE"
        assert len(reason) > 20, f"the reason why {key} has no GPU version: {reason!r}"
