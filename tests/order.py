"""The order of the tests: ``pytest --order file|reverse|random|random:SEED``.

No test may need another to have run before it, or not to have run. A random order shuffles the files, and
the tests within each; its seed stands in the header, and gives the same order again. With pytest-xdist all
processes have the same order.
"""

import itertools
import random
import re

import pytest


def add_option(parser):
    parser.addoption(
        "--order",
        default="file",
        metavar="ORDER",
        help="order of the tests: file (as written), reverse, random, or random:SEED",
    )


def settle(config):
    """Check the option, and draw a seed where none is given; pytest-xdist's processes have been told."""
    order = config.option.order
    if hasattr(config, "workerinput"):
        config.option.order = config.workerinput["order"]
    elif order == "random":
        config.option.order = f"random:{random.SystemRandom().randrange(10**6)}"
    elif order not in ("file", "reverse") and not re.fullmatch(r"random:\d+", order):
        raise pytest.UsageError(
            f"--order={order} must be file, reverse, random or random:SEED with a whole number"
        )


def share_with(node):
    """Pass the order to a process that pytest-xdist starts, which reads the command line anew."""
    node.workerinput["order"] = node.config.option.order


def arrange(order, items):
    """Put ``items`` in that order, in place."""
    if order == "reverse":
        items.reverse()
    elif order != "file":
        draw = random.Random(int(order.partition(":")[2]))
        by_file = itertools.groupby(items, key=lambda item: item.nodeid.split("::")[0])
        files = [list(tests) for _, tests in by_file]
        draw.shuffle(files)
        for tests in files:
            draw.shuffle(tests)
        items[:] = itertools.chain.from_iterable(files)
