"""LIBLINEAR's own Python packages: the serial one, and the multi-core one that shares its module's name.

Both distributions install a package ``liblinear``, the later one over the earlier. Which of them a folder
holds is read from its text. The environment variable ``SPARSEKIT_LIBLINEAR_MULTICORE`` names the folder of
the multi-core one. It is imported from there under another name, so that both work in one process.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib import metadata
from pathlib import Path

import numpy as np

from .solver import Fit, Solver

FOLDER = "SPARSEKIT_LIBLINEAR_MULTICORE"
ALIAS = "_sparsekit_liblinear_multicore"
# the field of its parameters that only the multi-core build has
MARK = "nr_thread"


class LiblinearOfficial(Solver):
    """LIBLINEAR's own Python package, newest release, ``-s 6``."""

    key, title, package = "liblinear-official", "LIBLINEAR (official)", "liblinear-official"
    compiles = True  # its CSR conversion is a numba function where numba is installed
    can_free_intercept = False  # its option -R does not exist for -s 6

    def missing(self):
        """Not installed, or the multi-core package was installed over it."""
        if super().missing():
            return super().missing()
        if _is_multicore(_installed()):
            return f"liblinear-multicore was installed over it; give that a folder and name it in {FOLDER}"
        return None

    def data(self, problem):
        """CSR in every case: a dense array would be converted row by row in Python."""
        from scipy import sparse

        return sparse.csr_matrix(problem.design("row")), problem.y

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """train(y, X, "-s 6 -c C -e tol"); max_iter is fixed inside the library."""
        from liblinear.liblinearutil import train

        return _fit(train, X, y, f"-s 6 -c {float(C)} -e {float(tol)} -q")


class LiblinearMulticore(LiblinearOfficial):
    """The multi-core LIBLINEAR, ``-s 6 -m n_threads``: parallel coordinate descent.

    With two threads release 2.50 returns answers far from the optimum for tolerances of 1e-10 and below. They
    are judged by their objective as all are, so that the looser fits decide.
    """

    key, title, package = "liblinear-multicore", "LIBLINEAR (multicore)", "liblinear-multicore"
    multithreaded = True

    @property
    def version(self):
        """Version of the distribution in the named folder, or of the installed one."""
        folder = os.environ.get(FOLDER)
        if not folder:
            return super().version
        found = metadata.distributions(path=[folder])
        return next((d.version for d in found if d.metadata["Name"] == self.package), None)

    def missing(self):
        """Neither in the named folder nor in the environment; how to install it next to the serial one."""
        folder = os.environ.get(FOLDER)
        if _is_multicore(_folder()):
            return None
        if folder:
            return f"{FOLDER} names {folder}, where it is not"
        return f"not installed: pip install --no-deps --target DIR {self.package}, then {FOLDER}=DIR"

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """train(y, X, "-s 6 -c C -e tol -m n_threads")."""
        options = f"-s 6 -c {float(C)} -e {float(tol)} -q -m {int(n_threads)}"
        return _fit(_multicore().train, X, y, options)


def _fit(train, X, y, options):
    model = train(y, X, options)
    # of the labels -1 and +1 the library puts +1 first, whichever it meets first
    return Fit(np.ctypeslib.as_array(model.w, (X.shape[1],)).copy(), 0.0, -1)


def _installed():
    """Folder of the package ``liblinear`` that an import would find, or None."""
    spec = importlib.util.find_spec("liblinear")
    folders = None if spec is None else spec.submodule_search_locations
    return Path(next(iter(folders))) if folders else None


def _folder():
    """Folder of the package that is to be the multi-core one, or None."""
    folder = os.environ.get(FOLDER)
    return Path(folder) / "liblinear" if folder else _installed()


def _is_multicore(folder):
    source = None if folder is None else folder / "liblinear.py"
    return source is not None and source.is_file() and MARK in source.read_text(encoding="utf-8")


def _multicore():
    """Module ``liblinearutil`` of the multi-core package."""
    if not os.environ.get(FOLDER):
        return importlib.import_module("liblinear.liblinearutil")
    if ALIAS not in sys.modules:
        folder = _folder()
        spec = importlib.util.spec_from_file_location(
            ALIAS, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        package = importlib.util.module_from_spec(spec)
        sys.modules[ALIAS] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"{ALIAS}.liblinearutil")
