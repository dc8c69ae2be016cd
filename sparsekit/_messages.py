"""Values in messages, as a user would type them. Every floor may import this."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from numbers import Integral
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._arrays import aligned
from ._typing import DeviceArray, EitherArray

# characters of a value in a message; what is longer ends in an ellipsis
MAX_CHARACTERS = 200


def plain(value: Any, most: int | None = None) -> Any:
    """``value`` with NumPy's scalars as Python's, also those in lists, tuples, sets, dicts, object arrays.

    ``most`` keeps that many items of each of them, or characters of a text, but of an array all.
    """
    if isinstance(value, np.generic):
        if value.dtype.kind in "mM":
            return str(value)  # of nanoseconds the item is a bare int
        item = value.item()
        return plain(float(item) if isinstance(item, np.floating) else item, most)  # a long double is its own
    if isinstance(value, np.ndarray) and value.dtype == object:
        out = np.empty(value.shape, dtype=object)
        out.ravel()[:] = [plain(item, most) for item in value.ravel()]
        return out
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(plain(item, most) for item in islice(value, most))
    if type(value) is dict:
        return {plain(key, most): plain(item, most) for key, item in islice(value.items(), most)}
    return value[:most] if type(value) in (str, bytes) else value


def shown(value: object) -> str:
    """``repr`` of a value, cut to `MAX_CHARACTERS`: ``0.5``, where NumPy 2 has ``np.float64(0.5)``."""
    # an item has a character at least: what `plain` leaves out would stand beyond the end
    text = repr(plain(value, MAX_CHARACTERS + 1))
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…"


# Names that a message lists.
MAX_NAMES = 10


def listed(names: Iterable[object], separator: str = ", ", count: int | None = None) -> str:
    """The first names, and how many more there are; ``count`` is that of all where ``names`` are not all."""
    texts = [str(name) for name in names]
    left = (len(texts) if count is None else count) - MAX_NAMES
    return separator.join(texts[:MAX_NAMES]) + (f" and {left} more" if left > 0 else "")


def numbers(values: ArrayLike | DeviceArray, name: str, xp: ModuleType = np) -> EitherArray:
    """``values`` as a float64 array of the module ``xp``; an error names what is no real number.

    ``values`` are lists, arrays of ``xp``, or what NumPy can read: series of pandas and Polars, tensors.
    """
    found: Any = values
    try:
        if not isinstance(getattr(values, "dtype", None), np.dtype):
            found = xp.asarray(values)
        # a conversion would drop imaginary parts with no more than a warning
        if found.dtype.kind != "c":
            return aligned(xp.asarray(found, dtype=np.float64))
    except (TypeError, ValueError, RuntimeError) as error:
        if found is values and not isinstance(getattr(values, "dtype", np.dtype(float)), np.dtype):
            # another library's array, which says why: a tensor on a GPU, or with a gradient
            raise TypeError(
                f"{name} must be an array that NumPy can read; got {shown(values)}: {error}"
            ) from None
        # NumPy's own message shows its types, and no name
        raise type(error)(f"{name} must hold numbers; got {shown(values)}") from None
    raise ValueError(f"{name} must hold real numbers; got complex ones: {shown(values)}")


def check_nonnegative(values: EitherArray, name: str) -> None:
    """ValueError that names the first entry below 0, infinite or NaN."""
    bad = ~(np.isfinite(values) & (values >= 0)).ravel()
    if bad.any():
        k = int(bad.argmax())
        index = ", ".join(map(str, np.unravel_index(k, values.shape)))
        entry = f"{name}[{index}]" if index else name
        raise ValueError(f"{name} must be finite and at least 0; {entry} is {float(values.ravel()[k]):g}")


def check_whole(value: object, name: str, least: int) -> int:
    """``value`` as an int, if it is a whole number from ``least`` on; else an error that names it."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, at least {least}; got {shown(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {shown(value)}")
    return int(value)
