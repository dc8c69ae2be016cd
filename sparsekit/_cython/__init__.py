"""Compiled kernels."""

from importlib.util import find_spec

if find_spec(f"{__name__}._sparse") is None:
    # a script in the checkout finds the folder beside it before the installed package
    raise ImportError(
        f"{__path__[0]} is sparsekit's source code, without the compiled kernels. Run Python from another "
        "folder than the checkout (after `pip install .`), or install it editable: "
        "`pip install --no-build-isolation --editable .`"
    )
