"""Peak memory during a fit, each in a process of its own, in units of the bytes of X as CSR.

The kernel's high-water mark of the resident set is reset just before the fit (Linux), so loading the data
does not count. The resident set at that moment is subtracted. X itself is in memory before the fit.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
from pathlib import Path

import _common
import _data

from sparsekit._compare import json_output, peers

DEFAULT_RATIOS = (0.01,)
TOL = {"sparsekit": 1e-6, "liblinear": 1e-4, "liblinear-official": 1e-4, "skglm": 1e-3, "celer": 1e-6}


def status(key):
    """A size from /proc/self/status in bytes."""
    with open("/proc/self/status", encoding="ascii") as lines:
        for line in lines:
            if line.startswith(key + ":"):
                return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {key}: this measurement needs Linux")


def csr_bytes(problem):
    """Bytes of X as CSR with float64 values and int32 indices."""
    n = problem.X.shape[0]
    nnz = problem.X.nnz if problem.is_sparse else int((problem.X != 0).sum())
    return 12 * nnz + 4 * (n + 1)


def child(folder, name, key, ratio, n_threads):
    """Fit once and print the numbers as JSON."""
    solver = next(s for s in peers.all_solvers() if s.key == key)
    problem = _data.problem(folder, name)
    C, size, sample = 1.0 / (ratio * problem.lambda_max), csr_bytes(problem), problem.sample()
    # imports and JIT compilation are not memory of the fit
    solver.fit(*solver.data(sample), 1.0 / (ratio * sample.lambda_max), 1e-2, 100, False, n_threads)
    X, y = solver.data(problem)
    del problem, sample
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # or else the fit could reuse pages that loading left behind
    with open("/proc/self/clear_refs", "w", encoding="ascii") as reset:
        reset.write("5")
    before = status("VmRSS")
    fit = solver.fit(X, y, C, TOL[key], 1000, False, n_threads)
    extra = status("VmHWM") - before
    print(json.dumps({"extra": extra, "csr": size, "nnz": int((fit.coef != 0).sum())}))


def run(args):
    """Measure and print; 1 if a process failed, else 0."""
    used = [s for s in _common.solvers(args, default=list(TOL)) if s.missing() is None and s.key in TOL]
    rows, results, failed = [], [], False
    for name in args.sets:
        for ratio in args.lambda_ratio or DEFAULT_RATIOS:
            for n_threads in args.n_jobs:
                row = [f"{name} {ratio:g}", n_threads]
                for solver in used:
                    settings = ["--folder", str(args.folder), "--name", name, "--key", solver.key]
                    settings += ["--ratio", str(ratio), "--n-threads", str(n_threads)]
                    command = [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), *settings]
                    try:
                        done = subprocess.run(
                            command, capture_output=True, text=True, timeout=60 + 10 * args.max_time
                        )
                    except subprocess.TimeoutExpired:
                        row.append("-")
                        print(f"{name} {ratio:g} x{n_threads} {solver.key}: not done in time", flush=True)
                        continue
                    if done.returncode:
                        failed = True
                        row.append("failed")
                        print(
                            f"{name} {ratio:g} {solver.key}: failed: {done.stderr.strip()[-300:]}", flush=True
                        )
                        continue
                    got = json.loads(done.stdout.splitlines()[-1])
                    share = got["extra"] / got["csr"]
                    row.append(f"{share:.2f}")
                    results.append(
                        {"data": name, "ratio": ratio, "n_threads": n_threads, "solver": solver.key, **got}
                    )
                    print(
                        f"{name} {ratio:g} x{n_threads} {solver.key}: {got['extra'] / 2**20:.1f} MiB on top "
                        f"of X = {share:.2f} x CSR ({got['csr'] / 2**20:.1f} MiB)",
                        flush=True,
                    )
                rows.append(row)
                lines = ["# Peak memory during a fit, over bytes of X as CSR (X itself not counted)", ""]
                lines += _common.environment(args, used)
                titles = [s.title for s in used]
                lines += _common.markdown_table(["data, lambda / lambda_max", "n_jobs", *titles], rows)
                _common.write_markdown(args.markdown, lines)
                if args.json:
                    json_output.write_json(args.json, {"command": args.command, "results": results})
    return int(failed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for option, kind in (("folder", str), ("name", str), ("key", str), ("ratio", float), ("n-threads", int)):
        parser.add_argument(f"--{option}", type=kind, required=True)
    child(**{k.replace("-", "_"): v for k, v in vars(parser.parse_args()).items()})
