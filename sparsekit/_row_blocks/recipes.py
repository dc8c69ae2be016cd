"""Dask's steps to a block, as a value: one task then makes its blocks one after another.

A task begins when all that it depends on is in its worker's memory. A task that sums over many blocks would
need memory for all of them. With recipes instead of blocks it holds one block, and reads the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any


def made(part: Any) -> Any:
    """The value of a recipe; other parts are values."""
    return part() if isinstance(part, partial) else part


def as_recipes(parts: Sequence[Any]) -> list[Any] | None:
    """Delayed values, one for each block, as functions that make them; other parts as they are.

    None where two blocks share a step, which would be carried out for each. Parts in a cluster's memory have
    no recipe and are not allowed.
    """
    from dask import get  # in the calling thread
    from dask.optimization import cull
    from dask.utils import ensure_dict

    graphs: dict[int, Any] = {}
    found: list[Any] = []
    seen: set[Any] = set()
    for part in parts:
        if not hasattr(part, "__dask_graph__"):
            found.append(part)
            continue
        if id(part.dask) not in graphs:
            graphs[id(part.dask)] = ensure_dict(part.dask)
        steps = cull(graphs[id(part.dask)], [part.key])[0]
        if not seen.isdisjoint(steps):
            return None
        seen.update(steps)
        found.append(partial(get, steps, part.key))
    return found
