"""Prints as JSON which names the ``cupy`` on the path has, and with which parameters."""

import ast
import inspect
import json
import re


def of_signature(function):
    """``[["name", "default" or None, is keyword-only], ...]`` without self."""
    found = []
    for p in inspect.signature(function).parameters.values():
        default = p.default
        text = None if default is p.empty else getattr(default, "__name__", None) or repr(default)
        found.append([f"*{p.name}" if p.kind == p.VAR_POSITIONAL else p.name, text, p.kind == p.KEYWORD_ONLY])
    return [entry for entry in found if entry[0] != "self"]


def of_docstring(function):
    """The same from the first line of a compiled function's docstring, or None where it has none."""
    line = (function.__doc__ or "").strip().split("\n")[0]
    found = re.match(r"[\w.]+\((.*)\)", line)
    if found is None:
        return None
    # Cython writes the types before the names
    parts = [re.sub(r"^(?:[\w.]+ )+(?=\w)", "", part.strip()) for part in found[1].split(",") if part.strip()]
    a = ast.parse(f"def f({', '.join(parts)}): pass").body[0].args
    plain = [x.arg for x in a.posonlyargs + a.args]
    defaults = [None] * (len(plain) - len(a.defaults)) + [ast.unparse(d) for d in a.defaults]
    found = [[name, default, False] for name, default in zip(plain, defaults)]
    if a.vararg is not None:
        found.append([f"*{a.vararg.arg}", None, False])
    found += [[x.arg, d and ast.unparse(d), True] for x, d in zip(a.kwonlyargs, a.kw_defaults)]
    return [entry for entry in found if entry[0] != "self"]


def described(value, cupy):
    if isinstance(value, cupy.ufunc):
        return "ufunc"
    if isinstance(value, type):
        return "type"
    if not callable(value):
        return "attribute"
    try:
        return of_signature(value)
    except ValueError:
        found = of_docstring(value)
        return "attribute" if found is None else found


def main():
    try:
        import cupy
        import cupyx.scipy.sparse
    except ImportError as error:
        print(json.dumps({"absent": f"{error}"}))
        return
    owners = {
        "cupy": cupy,
        "cupy.linalg": cupy.linalg,
        "cupy.ndarray": cupy.ndarray,
        "cupy.random": cupy.random,
        "cupy.cuda": cupy.cuda,
        "cupy.cuda.runtime": cupy.cuda.runtime,
        "cupy.cuda.Device": cupy.cuda.Device,
        "cupy.cuda.Event": cupy.cuda.Event,
        "cupy.RawModule": cupy.RawModule,
        "cupyx": cupyx,
        "cupyx.scipy.sparse": cupyx.scipy.sparse,
        "cupyx.scipy.sparse.csr_matrix": cupyx.scipy.sparse.csr_matrix,
        "cupyx.scipy.sparse.csc_matrix": cupyx.scipy.sparse.csc_matrix,
        "cupyx.scipy.sparse.coo_matrix": cupyx.scipy.sparse.coo_matrix,
    }
    names = {}
    for owner, holder in owners.items():
        for name in dir(holder):
            # not getattr for all: some attributes load a CUDA library when they are asked for
            value = inspect.getattr_static(holder, name, None)
            if name.startswith("_") or value is None or inspect.ismodule(value):
                continue
            if not (isinstance(holder, type) and isinstance(value, property)):
                value = getattr(holder, name)
            names[f"{owner}.{name}"] = described(value, cupy)
    print(json.dumps({"version": cupy.__version__, "names": names}))


if __name__ == "__main__":
    main()
