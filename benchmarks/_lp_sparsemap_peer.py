"""The library lp-sparsemap (`import lpsmap`), run by lp_sparsemap.py in an environment of its own.

Every line of the standard input is a JSON object and is answered by one. It is {"problem": file of arrays},
or the settings of a run: {"max_iter": ..., "step_size": ..., "tol": ..., "api": whether to time its public
call}. Seconds of the core are those of the C++ solver on a new graph, without the time to build it.
"""

import json
import os
import sys
import time

for key in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[key] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from lpsmap import AtMostOne, Budget, DepTree, Pair, TorchFactorGraph, Xor  # noqa: E402
from lpsmap.ad3qp.factor_graph import PFactorGraph  # noqa: E402

# a run is repeated for so many seconds
MIN_SECONDS = 0.03
# largest number of repetitions
MAX_REPEATS = 5
STATUS = ["integral", "fractional", "infeasible", "unsolved"]


def public_graph(problem, grad=False):
    """The graph as its users write it, and the tensors in it."""
    eta = torch.tensor(problem["eta"], dtype=torch.double, requires_grad=grad)
    weights = torch.tensor(problem["w"], dtype=torch.double, requires_grad=grad)
    kind, n = str(problem["kind"]), len(eta)
    graph = TorchFactorGraph()
    u = graph.variable_from(eta)
    if kind.startswith("pairs"):
        graph.add(Pair(u[problem["i"]], u[problem["j"]], weights))
    elif kind.startswith("matching"):
        for row in range(n):
            graph.add(Xor(u[row, :]))
        for column in range(eta.shape[1]):
            graph.add(AtMostOne(u[:, column]))
    else:
        graph.add(DepTree(u, packed=True, projective=False))
        if "budget" in kind:
            for head in range(n):
                graph.add(Budget(u[np.arange(n) != head, head], budget=int(problem["budget"])))
    return graph, u


def core_graph(problem, request):
    """What TorchFactorGraph.solve makes of it, set in the same way."""
    graph, _ = public_graph(problem)
    core = PFactorGraph()
    offset, variables, scores = graph._make_variables(core)
    additional = graph._make_factors(core, offset, variables)
    core.set_verbosity(0)
    core.set_eta_ad3(request["step_size"])
    core.adapt_eta_ad3(True)
    core.set_max_iterations_ad3(request["max_iter"])
    core.set_residual_threshold_ad3(request["tol"])
    core.set_inner_iter(10)
    core.set_log_potentials(scores.numpy())
    core.set_all_additionals([np.atleast_1d(x.numpy()) for x in additional])
    return core, graph  # the graph keeps the factors alive


def run(problem, request):
    """Seconds forward and backward, and the errors."""
    times, start = [], time.perf_counter()
    while not times or (len(times) < MAX_REPEATS and time.perf_counter() - start < MIN_SECONDS):
        core, _keep = core_graph(problem, request)
        gradient = np.zeros(problem["eta"].size)
        before = time.perf_counter()
        _, mu, _, status = core.solve_qp_ad3()
        between = time.perf_counter()
        rest = core.jacobian_vec(problem["direction"].ravel(), gradient)
        times.append((between - before, time.perf_counter() - between))
    wrong = np.abs(gradient - problem["gradient"].ravel())
    if len(problem["w"]):
        wrong = np.append(wrong, np.abs(np.array([x[0] for x in rest]) - problem["gradient_w"]))
    error = float(np.abs(np.asarray(mu) - problem["mu"].ravel()).max())
    found = {"times": times, "error": error, "gradient_error": float(wrong.max()), "status": STATUS[status]}
    if request.get("api"):
        graph, u = public_graph(problem, grad=True)
        before = time.perf_counter()
        graph.solve(max_iter=request["max_iter"], step_size=request["step_size"], tol=request["tol"])
        between = time.perf_counter()
        loss = (u.value * torch.tensor(problem["direction"])).sum()
        later = time.perf_counter()
        loss.backward()
        found["api"] = between - before, time.perf_counter() - later
    return found


def main():
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the library prints is no answer
    problem = None
    for line in sys.stdin:
        request = json.loads(line)
        if "problem" in request:
            problem, found = dict(np.load(request["problem"])), {}
        else:
            found = run(problem, request)
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
