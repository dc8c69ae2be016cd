"""Numbers as text: as Python reads them, to the last bit, or left to it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsekit._cython.datasets._row_files import number


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["%r", "%.17g", "%.16g", "%.18e", "%.5f", "%.0f"]),
)
def test_numbers_are_rounded_as_python_does(value, form):
    text = (form % value).encode()
    # what sixteen digits round up to infinity is left to Python
    assert number(text + b"#") == (None if math.isinf(float(text)) else (float(text), len(text)))


@settings(max_examples=1000)
@given(st.integers(0, 2**64), st.integers(-30, 30))
def test_digits_with_a_power(digits, power):
    text = b"%de%d" % (digits, power)
    assert number(text) == (float(text), len(text))


def test_numbers_halfway_between_two():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        # an odd multiple of half a unit in the last place, which has too many digits for a double
        half = 2 * int(rng.integers(2**52, 2**53)) + 1
        for text in (
            b"%d" % half,
            b"%de0" % (half - 1),
            b"%d0e-1" % half,
            b"%d.%de1" % (half // 10, half % 10),
        ):
            assert number(text) == (float(text), len(text))


def test_numbers_next_to_halfway():
    """That trifle is lost in a double next to the first one: ``off`` and one bit, 61 behind it or 62."""
    n = 0
    for bits in (61, 62):
        for off in (-3, -1, 1, 3):
            first = (2 ** (bits - 1) + off) * pow(5**22, -1, 2**bits) % 2**bits
            for w in range(first, 2**64, 2**bits):
                if (w * 5**22).bit_length() == 53 + bits:
                    text = b"%de22" % w
                    assert number(text) == (float(text), len(text))
                    n += 1
    assert n == 16


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"-",
        b".",
        b"e5",
        b"1e",
        b"1e+",
        b"x",
        b"1e400",
        b"1.797693134862316e+308",
        b"nan",
        b"inf",
        b"+-1",
    ],
)
def test_what_is_no_number(text):
    assert number(text) is None
