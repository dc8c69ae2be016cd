"""Who waits for whom: locks of graphs, and graphs that wait for the answer of a user's ``maximize``."""

import os
import threading
from contextlib import contextmanager
from weakref import WeakSet

_local = threading.local()
_holders: WeakSet = WeakSet()


def lock_of(holder):
    """A lock for ``holder.lock``. In the child of a fork it is free: its owner does not exist there."""
    _holders.add(holder)
    return threading.Lock()


def _free_locks():
    for holder in list(_holders):
        holder.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)


def being_asked():
    """Layouts of the graphs whose solves wait for what this thread does."""
    return getattr(_local, "layouts", ())


@contextmanager
def asking(layouts):
    """Mark this thread, one of OpenMP's perhaps, as working for the solves of ``layouts``."""
    before, _local.layouts = being_asked(), layouts
    try:
        yield
    finally:
        _local.layouts = before


def refuse_own_graph(layouts, what):
    """RuntimeError where one of the layouts waits for this thread: each would wait for the other for ever."""
    waiting = being_asked()
    if any(layout is other for layout in layouts for other in waiting):
        raise RuntimeError(
            f"a factor's maximize {what} the graph that it is part of, which waits for its answer; give it a "
            "graph of its own"
        )
