"""Reading ahead in a thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def read_ahead(items: Iterable[T], count: int = 1) -> Generator[T]:
    """The items in their order; while the caller works on one, a thread makes the next ``count``."""
    end = object()
    iterator = iter(items)
    pool = ThreadPoolExecutor(1, thread_name_prefix="sparsekit-read-ahead")
    waiting: deque[Any] = deque()
    try:
        waiting.extend(pool.submit(next, iterator, end) for _ in range(count + 1))
        while True:
            # no name may refer to an item while the caller has it: it can be a gigabyte
            box = [waiting.popleft().result()]
            if box[0] is end:
                return
            yield box.pop()
            waiting.append(pool.submit(next, iterator, end))
    finally:
        pool.shutdown(cancel_futures=True)
