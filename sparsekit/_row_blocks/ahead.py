"""Reading ahead in a thread."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def read_ahead(items: Iterable[T]) -> Generator[T]:
    """The items in their order; while the caller works on one, a thread makes the next."""
    end: Any = object()
    iterator = iter(items)
    pool = ThreadPoolExecutor(1, thread_name_prefix="sparsekit-read-ahead")
    try:
        following = pool.submit(next, iterator, end)
        while True:
            # no name may refer to an item while the caller has it: it can be a gigabyte
            box = [following.result()]
            if box[0] is end:
                return
            following = pool.submit(next, iterator, end)
            yield box.pop()
    finally:
        pool.shutdown(cancel_futures=True)
