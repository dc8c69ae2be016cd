"""Run as a script: fits in this process with two threads, then the same in a child of a fork.

``python forked.py cases`` does so for every kind of kernel that takes threads, ``python forked.py joblib``
in processes of joblib. Each case prints a line: its name, and ``same``, ``differs``, ``hangs``, or what went
wrong.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import sparsekit as sk
from sparsekit._fenchel_young.losses import loss as fenchel_young
from sparsekit._fenchel_young.losses import sparsemax
from sparsekit._linalg import as_design
from sparsekit.optimize import LogisticLoss, minimize_oba

# seconds for what takes a few hundredths
LIMIT = 30

# what runs in threads that the child starts, and in processes of multiprocessing, as well
ALSO = ("L1LogisticOBA, CSR", "sparsemax", "FactorGraph")

# threads that race for the same weights have other results each time, by intent
RACING = ("ExtremeSoftmaxSGD", "ExtremeSoftmaxSGD, is")


def _kinks(x):
    return float(np.abs(x - 1.0).sum() + 0.5 * (x @ x)), np.sign(x - 1.0) + x


def cases(n_jobs=2):
    """Name: function of no arguments that returns arrays, the same for one thread and for several."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random(300, 30, 0.3, format="csr", random_state=0))
    y = np.arange(300) % 2
    many = np.arange(300) % 5
    target = X @ rng.standard_normal(30) + rng.standard_normal(300)
    labels = (rng.random((300, 4)) < 0.4).astype(int)
    scores = rng.standard_normal((200, 20))
    dense = rng.standard_normal((300, 120))
    graph = sk.FactorGraph()
    variables = graph.variable(6 * [0.0])
    graph.add(sk.Budget(variables, 2))
    graph.add(sk.Pair(variables[:2], 0.5))
    loss = LogisticLoss(X, 2.0 * y - 1, n_threads=n_jobs)

    def fitted(model, X, y, *methods):
        def run():
            one = clone(model).set_params(n_jobs=n_jobs).fit(X, y)
            return [one.coef_, *(getattr(one, method)(X) for method in methods)]

        return run

    logistic = sk.L1LogisticOBA(C=1.0)
    return {
        "L1LogisticOBA, CSR": fitted(logistic, X, y, "predict"),
        "L1LogisticOBA, CSC": fitted(sk.L1LogisticOBA(), X.tocsc(), y),
        "L1LogisticOBA, dense": fitted(sk.L1LogisticOBA(), X.toarray(), y),
        "L1LogisticOBA, multinomial": fitted(sk.L1LogisticOBA(), X, many),
        "L1LogisticOBA, multinomial, dense": fitted(sk.L1LogisticOBA(max_iter=3), dense, many),
        "L1LogisticOBACV": fitted(sk.L1LogisticOBACV(Cs=2, cv=2), X, y),
        "l1_logistic_path": lambda: [sk.l1_logistic_path(X, y, n_lambdas=3, n_jobs=n_jobs).coefs],
        "LassoOBA": fitted(sk.LassoOBA(0.01), X, target),
        "LassoOBACV": fitted(sk.LassoOBACV(alphas=2, cv=2), X, target),
        "lasso_path": lambda: [sk.lasso_path(X, target, n_lambdas=3, n_jobs=n_jobs).coefs],
        "minimize_nqn": lambda: [sk.minimize_nqn(_kinks, scores[0], jac=True, bounds=20 * [(-1, 3)]).x],
        "minimize_oba": lambda: [minimize_oba(loss, 0.5).x],
        "BoundedRegressor": fitted(sk.BoundedRegressor(loss="absolute", max_iter=5), X, target),
        "BoundedClassifier": fitted(sk.BoundedClassifier(), X, y),
        "SparsemaxClassifier": fitted(sk.SparsemaxClassifier(max_iter=3), X, many, "predict_proba"),
        "SoftmaxClassifier": fitted(sk.SoftmaxClassifier(max_iter=3), X, many, "predict_proba"),
        "SoftmaxClassifier, dense": fitted(sk.SoftmaxClassifier(), dense, many, "predict_proba"),
        "SparsemaxClassifierCV": fitted(
            sk.SparsemaxClassifierCV(alphas=[1.0, 0.1], cv=2, max_iter=3), X, many
        ),
        "ExtremeSoftmaxSGD": fitted(sk.ExtremeSoftmaxSGD(max_iter=2, random_state=0), X, many, "predict"),
        "ExtremeSoftmaxSGD, is": fitted(
            sk.ExtremeSoftmaxSGD("is", max_iter=2, random_state=0), X, many, "predict"
        ),
        "LPSparseMAPClassifier": fitted(
            sk.LPSparseMAPClassifier(1e-4, pairs="all", max_iter=20), X, labels, "predict"
        ),
        "sparsemax": lambda: [sk.sparsemax(scores, n_jobs=n_jobs)],
        "sparsemax_jvp": lambda: [sk.sparsemax_jvp(sk.sparsemax(scores), scores, n_jobs=n_jobs)],
        "FactorGraph": lambda: [graph.solve_batch(scores[:, :6], n_jobs=n_jobs).x],
    }


def _threaded_cases():
    """With threads for the smallest data."""
    as_design.THREAD_WORK = sparsemax._THREAD_WORK = fenchel_young._THREAD_WORK = 1
    return cases()


def _compare(name, expected, found):
    if name in RACING:
        good = all(a.shape == b.shape and np.isfinite(b).all() for a, b in zip(expected, found, strict=True))
    else:
        good = all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
    return "same" if good else "differs"


def _in_new_thread(run):
    """What ``run`` returns in another thread than the one that lived on."""
    found = []
    thread = threading.Thread(target=lambda: found.append(run()), daemon=True)
    thread.start()
    thread.join(timeout=LIMIT)
    return found[0]


def _forked(how, name, expected, run):
    """``run`` in a child made by os.fork."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = _compare(name, expected, _in_new_thread(run) if how == "thread" else run())
        except BaseException:
            said = traceback.format_exc().replace("\n", "; ")
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    end = time.monotonic() + LIMIT
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hangs"
        time.sleep(0.005)
    said = os.read(reader, 10**5).decode()
    os.close(reader)
    return said or "ended without a word"


def _processed(name, expected, run):
    """``run`` in a process of multiprocessing."""
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    process = context.Process(target=lambda: answers.put(_compare(name, expected, run())), daemon=True)
    process.start()
    process.join(timeout=LIMIT)
    if process.is_alive():
        process.kill()
        process.join(timeout=LIMIT)
        return "hangs"
    return answers.get() if process.exitcode == 0 else f"ended with status {process.exitcode}"


def _each_case():
    hanging = 0
    for name, run in _threaded_cases().items():
        expected = run()
        for how in ("fork", "thread", "process") if name in ALSO else ("fork",):
            if hanging == 2:
                said = "not tried: two others hang"
            elif how == "process":
                said = _processed(name, expected, run)
            else:
                said = _forked(how, name, expected, run)
            hanging += said == "hangs"
            print(f"{name} ({how}): {said}", flush=True)


def _joblib():
    import joblib

    cases = _threaded_cases()
    expected = [cases[name]() for name in ALSO]
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        found = joblib.Parallel(timeout=LIMIT)(joblib.delayed(_again)(name) for name in ALSO)
    for name, *both in zip(ALSO, expected, found, strict=True):
        print(f"{name} (joblib): {_compare(name, *both)}")


def _again(name):
    return _threaded_cases()[name]()


def _asked():
    """A fork while another thread solves the same graph, and waits for a user's factor."""
    asked, leave = threading.Event(), threading.Event()

    class AllOrNone(sk.Factor):
        def maximize(self, scores, additional_scores):
            asked.set()
            leave.wait(LIMIT)
            return np.full(scores.shape, float(scores.sum() > 0))

    graph = sk.FactorGraph()
    graph.add(AllOrNone(graph.variable([0.9, -0.3])))
    other = threading.Thread(target=graph.solve, daemon=True)
    other.start()
    assert asked.wait(LIMIT)

    def run():
        leave.set()
        return [graph.solve().x.round(9)]

    print("a factor that is asked:", _forked("fork", "", [np.array([0.3, 0.3])], run))
    leave.set()
    other.join(LIMIT)


if __name__ == "__main__":
    tried = {"asked": _asked, "cases": _each_case, "joblib": _joblib}
    tried[sys.argv[1]]()
