"""How many examples each fuzzer draws, and from which seed.

A fuzzer is a property that draws its example itself::

    @fuzz(share=5)
    def test_fits(draw, name): ...

``share`` is its part of all examples. There are so many in all: `TOTAL` by hypothesis' profile
(tests/conftest.py), or what SPARSEKIT_FUZZ_EXAMPLES says. In CI the seed is 0, so that all machines draw the
same. Elsewhere it is what SPARSEKIT_FUZZ_SEED says, or drawn, and stands in pytest's header. A fuzzer of many
examples is cut into parts. pytest-xdist spreads them over the processes. Each has its own seed and its own
limit of time.
"""

import functools
import inspect
import os
import zlib

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

TOTAL = {"fixed": 600, "explore": 10_000, "night": 100_000}
# sum of the shares of all fuzzers, those of a parametrised one counted for each of its tests;
# tests/fuzz/test_fuzz_budget.py adds them up
SHARES = 971
# examples a part, so that a part ends long before a test's limit
PART = 250
# seconds: the example that fails is made small before it is shown, for up to five minutes
LIMIT = 570


def profile():
    return os.environ.get("HYPOTHESIS_PROFILE", "fixed")


def examples(share):
    """Number of examples of a fuzzer with that share."""
    total = int(os.environ.get("SPARSEKIT_FUZZ_EXAMPLES") or TOTAL[profile()])
    return max(1, round(total * share / SHARES))


def first_seed():
    return int(os.environ.get("SPARSEKIT_FUZZ_SEED", "0"))


def settle():
    """Draw the seed of a run that is not CI's; processes that are started inherit it."""
    if profile() != "fixed":
        os.environ.setdefault("SPARSEKIT_FUZZ_SEED", str(int.from_bytes(os.urandom(4))))


def header():
    return f"fuzzers: about {examples(SHARES)} examples, SPARSEKIT_FUZZ_SEED={first_seed()}"


def fuzz(share):
    """A test of ``check(draw, **fixtures)``, which draws its example by ``draw(strategy)``."""

    def wrap(check):
        count = examples(share)
        sizes = [min(PART, count - start) for start in range(0, count, PART)]

        @pytest.mark.timeout(LIMIT)
        @pytest.mark.parametrize("part", range(len(sizes)))
        @functools.wraps(check)
        def test(part, request, **fixtures):
            @seed(first_seed() + zlib.crc32(request.node.nodeid.encode()))
            @settings(
                max_examples=sizes[part],
                deadline=None,
                database=None,
                derandomize=False,
                print_blob=True,
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            )
            @given(st.data())
            def run(data):
                check(data.draw, **fixtures)

            run()

        given_ones = list(inspect.signature(check).parameters.values())[1:]
        own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("part", "request")]
        test.__signature__ = inspect.Signature([p.replace(kind=p.KEYWORD_ONLY) for p in given_ones] + own)
        test.share, test.parts = share, len(sizes)
        return test

    return wrap
