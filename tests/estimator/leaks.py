"""Resident memory over many fits of one estimator: ``python leaks.py NAME FITS`` prints it as JSON.

Each estimator needs a process of its own, since an allocator keeps what another one gave back. All of them,
each with 10^4 fits (half an hour on one processor): ``python leaks.py all 10000``.
"""

import gc
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

# fits before memory is measured first: caches fill, arenas of the allocator reach their size
WARM_UP = 100

# bytes that may come once in a process
ONCE = 2**20


def resident():
    """Bytes of this process that are in memory, after what nobody holds was given back to the system."""
    import ctypes

    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # not musl's
    if trim is not None:
        trim(0)
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cases():
    """{name: functions that fit an estimator, one after the other}."""
    import saved_models as small

    import sparsekit as sk

    found = {}
    for name, fit in small.MODELS.items():
        found.setdefault(name.split()[0], []).append(fit)
    X, single, y = small.X, small.X.astype("f4"), small.KINDS

    def tag(form=lambda x: x, **options):
        return lambda: sk.SequenceTagger(max_iter=5, **options).fit([form(X), single], [y, y])

    found["SequenceTagger"] = [
        tag(history=True), tag(loss="sparsemap"), tag(form=type(small.CSR), l1_ratio=0.5),
        tag(loss="hinge"), tag(all_possible_states=False),
    ]  # fmt: skip
    return found


def growth(name, fits, warm_up=WARM_UP):
    """Bytes by which ``fits`` fits, with a prediction each, let this process grow, and their seconds."""
    from saved_models import X

    warnings.simplefilter("ignore")  # of a few steps none converges
    rounds = cases()[name]

    def run(count):
        for k in range(count):
            model = rounds[k % len(rounds)]()
            rows = [X] if type(model).__name__ == "SequenceTagger" else X
            (model.transform if hasattr(model, "transform") else model.predict)(rows)

    run(warm_up)
    before, start = resident(), time.perf_counter()
    run(fits)
    seconds = time.perf_counter() - start
    grew = resident() - before
    if grew >= ONCE:
        # a new thread's heap is of this size and comes once; what a fit loses is lost again
        again = resident()
        run(fits)
        grew = min(grew, resident() - again)
    return {"name": name, "fits": fits, "grew": grew, "resident": before, "seconds": seconds}


def main(name, fits):
    if name != "all":
        print(json.dumps(growth(name, int(fits))), flush=True)
        return
    for one in cases():
        command = [sys.executable, Path(__file__).resolve(), one, fits]
        subprocess.run(command, check=True, timeout=60 + int(fits))


if __name__ == "__main__":
    main(*sys.argv[1:])
