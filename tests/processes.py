"""In how many processes the tests run: pytest-xdist with one a processor, where it is installed.

pyproject.toml asks for ``--numprocesses=auto --dist=worksteal``; ``pytest -n 0`` runs all in one process.
"""

import os

# more take more memory than they save time
MOST = 8


def processors():
    """Processors that this process may use, as many as a container grants."""
    import joblib

    return joblib.cpu_count()


def add_options(parser, pluginmanager):
    """Take the options of pytest-xdist where it is not installed, or left out (-p no:xdist)."""
    if not pluginmanager.has_plugin("xdist"):
        group = parser.getgroup("processes", "without pytest-xdist")
        group.addoption("--numprocesses", help="of no account: pytest-xdist is not there")
        group.addoption("--dist", help="of no account: pytest-xdist is not there")


def number(config):
    """For ``-n auto``; tests named one by one do not wait for other processes to start."""
    asked = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    if asked:
        return int(asked)
    if all("::" in argument for argument in config.args):
        return 0
    count = min(processors(), MOST)
    return count if count > 1 else 0


def share_processors(config):
    """Set how many threads the processes to be started may use where a test doesn't say.

    They read it when they load BLAS and OpenMP. Threads that wait for others must not take the processor from
    them: by default they spin.
    """
    count = len(getattr(config.option, "tx", None) or [])
    if count > 1 and not hasattr(config, "workerinput"):
        threads = max(1, processors() // count)
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, str(threads))
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def header(config):
    if not config.pluginmanager.has_plugin("xdist"):
        return "one process: pytest-xdist is not there"
    count = len(config.option.tx or [])
    return f"{count} processes, --dist={config.option.dist}" if count else "one process"
