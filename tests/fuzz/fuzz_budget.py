"""How many examples each fuzzer draws, and from which seed.

A fuzzer is a property that draws its example itself::

    @fuzz(share=5)
    def test_fits(draw, name): ...

``share`` is its part of all examples. There are so many in all: `TOTAL` by hypothesis' profile
(tests/conftest.py), or what SPARSEKIT_FUZZ_EXAMPLES says. In CI the seed is 0, so that all machines draw the
same. Elsewhere it is what SPARSEKIT_FUZZ_SEED says, or drawn, and stands in pytest's header.
"""

import functools
import inspect
import os
import zlib

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

TOTAL = {"fixed": 480, "explore": 8_000, "night": 80_000}
# sum of the shares of all fuzzers, those of a parametrised one counted for each of its tests;
# tests/fuzz/test_fuzz_budget.py adds them up
SHARES = 780
# seconds: some thousand examples, and the one that fails is made small for up to five minutes
LIMIT = 900


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
        @pytest.mark.timeout(LIMIT)
        @functools.wraps(check)
        def test(request, **fixtures):
            @seed(first_seed() + zlib.crc32(request.node.nodeid.encode()))
            @settings(
                max_examples=examples(share),
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
        own = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY)
        test.__signature__ = inspect.Signature([p.replace(kind=p.KEYWORD_ONLY) for p in given_ones] + [own])
        test.share = share
        return test

    return wrap
