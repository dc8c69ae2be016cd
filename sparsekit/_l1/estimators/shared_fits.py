"""Fits to equal data that share Gram matrices and Hessians, and start at earlier solutions."""

from __future__ import annotations

import multiprocessing
import threading
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..._linalg.special import largest
from ..._messages import shown
from ..solver.choose_solver import choose_solver


class SharedState:
    """What fits to one data set share.

    Attributes
    ----------
    prepared : WorkingHessian or None
        Hessian of the columns in use.
    solutions : list of tuple
        ``(penalty, l1_ratio, numbers of the non-zeros, their values)``.
    """

    def __init__(self):
        self.prepared, self.solutions = None, []

    @property
    def n_bytes(self):
        """Memory in bytes."""
        own = 0 if self.prepared is None else self.prepared.n_bytes
        return own + sum(numbers.nbytes + values.nbytes for *_, numbers, values in self.solutions)

    def start(self, penalty, l1_ratio, size):
        """The solution (size,) at the nearest penalty, or None."""
        if not self.solutions:
            return None
        ends = [abs(np.log(penalty / other)) + abs(l1_ratio - ratio) for other, ratio, *_ in self.solutions]
        *_, numbers, values = self.solutions[int(np.argmin(ends))]
        x = np.zeros(size)
        x[numbers] = values
        return x

    def add(self, penalty, l1_ratio, x):
        """Store a solution x."""
        numbers = np.flatnonzero(x)
        self.solutions = [one for one in self.solutions if one[:2] != (penalty, l1_ratio)]
        self.solutions.append((penalty, l1_ratio, numbers, x[numbers]))


class Store:
    """States of the data sets that this process used last; at most ``max_bytes`` of memory."""

    def __init__(self, token, max_bytes):
        self.token, self.max_bytes = token, max_bytes
        self._states: OrderedDict[tuple, SharedState] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def borrow(self, key):
        """The `SharedState` of a key, out of other threads' reach until the block ends."""
        with self._lock:
            state = self._states.pop(key, None) or SharedState()
        yield state
        with self._lock:
            self._states[key] = state
            while self._states and sum(one.n_bytes for one in self._states.values()) > self.max_bytes:
                self._states.popitem(last=False)


# The store of the open `shared_fits`; in a worker process that of the last one that sent an estimator.
_active: Store | None = None
_is_open = False


@contextmanager
def shared_fits(max_bytes: int = 2**28) -> Iterator[None]:
    """Context in which fits to equal data share their work: for GridSearchCV and loops over penalties.

    Within this context :class:`L1LogisticOBA`, :class:`LassoOBA`, :class:`GLMOBA` and :class:`OrdinalOBA`
    recognise data that they were fitted to before, by checksums of X, y, weights, offset and penalty weights.
    Then they

    - start at the solution of the nearest penalty so far,
    - reuse the Gram matrix, or the Hessian, of the columns that were in use.

    Results are certified as outside of it. They equal those to ``tol``, not to the last bit, and ``n_iter_``
    is smaller. The context holds for all threads of the process. It also holds for processes of joblib that
    get an estimator meanwhile; each has its own memory. All memory is freed when the context ends, in other
    processes when they end or a later context uses them. :class:`L1LogisticOBACV` and :class:`LassoOBACV` are
    faster still and need no context.

    Parameters
    ----------
    max_bytes : int, default=268435456
        Memory that a process may use; data sets that were used last stay. X itself is not stored.

    Yields
    ------
    None

    Raises
    ------
    ValueError
        If ``max_bytes`` is not an integer of at least 0.

    See Also
    --------
    L1LogisticOBACV : Chooses C along paths.

    Notes
    -----
    X in blocks of rows or on a GPU, and fits with ``history=True`` or ``hessian="lbfgs"``, share nothing.
    Inside another ``shared_fits`` this does nothing.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import sparsekit
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), sparsekit.L1LogisticOBA())
    >>> search = GridSearchCV(model, {"l1logisticoba__C": [0.01, 0.1, 1.0]}, cv=3)
    >>> with sparsekit.shared_fits():
    ...     search = search.fit(X, y)
    >>> search.best_params_
    {'l1logisticoba__C': 0.1}
    """
    global _active, _is_open
    if not isinstance(max_bytes, Integral) or max_bytes < 0:
        raise ValueError(f"max_bytes must be an integer of at least 0; got {shown(max_bytes)}")
    if _is_open:
        yield
        return
    _active, _is_open = Store(uuid.uuid4().hex, int(max_bytes)), True
    try:
        yield
    finally:
        _active, _is_open = None, False


@dataclass
class Sharing:
    """Initial point and solver of a fit; the fit sets ``solution`` to its variables."""

    x0: Any
    solver: Any
    solution: Any = None


class SharedFitsMixin:
    """Estimator whose fits share their work within `shared_fits`, also after pickling to another process."""

    _in_key: ClassVar[tuple[str, ...]] = ("positive", "solver")  # parameters that the solutions depend on

    def __getstate__(self):
        state = super().__getstate__()
        if _is_open:
            state = {**state, "_shared_fits": (_active.token, _active.max_bytes)}
        return state

    def __setstate__(self, state):
        sent = state.get("_shared_fits")
        if sent is not None and multiprocessing.parent_process() is None:  # a file, or a copy
            state = {name: value for name, value in state.items() if name != "_shared_fits"}
        super().__setstate__(state)

    def __sklearn_clone__(self):
        clone = super().__sklearn_clone__()
        if "_shared_fits" in vars(self):
            clone._shared_fits = self._shared_fits
        return clone

    def _store(self):
        """The store for this fit, or None."""
        global _active
        sent = vars(self).pop("_shared_fits", None)
        if not _is_open and sent is None:
            return None
        if not _is_open and (_active is None or _active.token != sent[0]):
            _active = Store(*sent)
        return _active

    @contextmanager
    def _shared(self, whole, loss, x0):
        """The `Sharing` of a fit of ``loss`` of the problem ``whole`` from ``x0``."""
        store, X, solver = self._store(), whole.X, getattr(self, "solver", "auto")
        choose = partial(choose_solver, loss, self.l1_ratio, hessian=self.hessian, solver=solver)
        if store is None or not whole.is_in_main_memory or self.history or self.hessian != "exact":
            yield Sharing(x0, choose()[0])
            return
        penalty = np.broadcast_to(np.asarray(whole.penalty, dtype=np.float64), X.shape[1:])
        level = largest(penalty) or 1.0
        own = [getattr(self, name, None) for name in self._in_key]
        key = _key(
            (type(self).__name__, *own, self.fit_intercept),
            X,
            penalty / level,
            whole.values,
            whole.weight,
            whole.shift,
        )
        with store.borrow(key) as shared:
            start = shared.start(level, self.l1_ratio, loss.n_variables) if x0 is None else x0
            solver, session = choose("shared")
            if session is not None and shared.prepared is not None:
                session.attach(shared.prepared)
            sharing = Sharing(start, solver)
            yield sharing
            if session is not None:
                shared.prepared = session.detach()
            if sharing.solution is not None:
                shared.add(level, self.l1_ratio, sharing.solution)


def _key(options, *arrays):
    """Types, shapes and checksums of data.

    Two data sets with equal keys share by mistake. Gradients of a fit's own data correct that.
    """
    found = [*options]
    for array in arrays:
        if array is None:
            found.append(None)
            continue
        pieces = (array.data, array.indices, array.indptr) if sp.issparse(array) else (np.asarray(array),)
        found.append((type(array).__name__, np.shape(array)))
        for piece in pieces:
            by_columns = piece.ndim == 2 and piece.flags.f_contiguous
            numbers = np.ascontiguousarray(piece.T if by_columns else piece)
            found.append((piece.dtype.str, by_columns, zlib.crc32(numbers.reshape(-1).view(np.uint8))))
    return tuple(found)
