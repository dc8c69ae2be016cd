"""Which graphs wait for the answer of a user's ``maximize``, and cannot be solved by it."""

import threading
from contextlib import contextmanager

_local = threading.local()


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
