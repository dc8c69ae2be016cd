"""What one test changes is no matter of the next: state of the process, and the emulated CuPy.

Such state is a name rebound in a module of ``tests/emulator/emulated`` (an assignment where a call was meant,
say). Or it is an environment variable, a working directory and the like. It is put back, and the test that
left it fails: ``monkeypatch`` takes back what it did. What the emulation is told by its own functions (order
of the threads, counts, random numbers) starts anew for each test.
"""

import os
import signal
import sys
from pathlib import Path
from types import ModuleType

EMULATED = Path(__file__).resolve().parent / "emulator" / "emulated"
_KEPT = {"__warningregistry__", "__annotations__"}  # filled in passing
# by pytest, by scikit-learn, by PyTorch's compiler and by Polars when they are imported
_SET_BY_OTHERS = {
    "PYTEST_CURRENT_TEST",
    "KMP_DUPLICATE_LIB_OK",
    "KMP_INIT_AT_FORK",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "_RJEM_MALLOC_CONF",
}
_found = {"modules": [], "among": 0}


def emulated_modules():
    """The modules of tests/emulator/emulated that are loaded."""
    if "cuda_launch" not in sys.modules and "cupy" not in sys.modules:
        return []
    if _found["among"] != (among := (len(sys.modules), id(sys.modules.get("cupy")))):
        names = [name for name in sys.modules if name.startswith(("cupy", "cuda_"))]
        known = [sys.modules[name] for name in names]
        _found["modules"] = [
            module for module in known if str(getattr(module, "__file__", "")).startswith(str(EMULATED))
        ]
        _found["among"] = among
    return _found["modules"]


def _start_anew(modules):
    """Defaults of what the emulation's own functions set."""
    for module in modules:
        if module.__name__ == "cuda_launch":
            module.seed(0)
        elif module.__name__ == "cupy.emulation":
            module.reset()
        elif module.__name__ == "cupy.random":
            module.seed(0)


def _process():
    """State of this process that tests are tempted to change."""
    state = {
        "the working directory": os.getcwd(),
        "sys.path": list(sys.path),
        "the handler of SIGINT": signal.getsignal(signal.SIGINT),
        "os.environ": {name: text for name, text in os.environ.items() if name not in _SET_BY_OTHERS},
        "pyplot.get_fignums()": sys.modules["matplotlib.pyplot"].get_fignums()
        if "matplotlib.pyplot" in sys.modules
        else [],
    }
    if "numpy" in sys.modules:
        state["numpy.geterr()"] = sys.modules["numpy"].geterr()
    if "sklearn" in sys.modules:
        state["sklearn.get_config()"] = sys.modules["sklearn"].get_config()
    if "torch" in sys.modules:
        state["torch.get_default_dtype()"] = sys.modules["torch"].get_default_dtype()
    return state


def _put_back(name, value):
    if name == "the working directory":
        os.chdir(value)
    elif name == "sys.path":
        sys.path[:] = value
    elif name == "the handler of SIGINT":
        signal.signal(signal.SIGINT, value)
    elif name == "os.environ":
        for extra in set(os.environ) - set(value) - _SET_BY_OTHERS:
            del os.environ[extra]
        os.environ.update(value)
    elif name == "pyplot.get_fignums()":
        for number in set(sys.modules["matplotlib.pyplot"].get_fignums()) - set(value):
            sys.modules["matplotlib.pyplot"].close(number)
    elif name == "numpy.geterr()":
        sys.modules["numpy"].seterr(**value)
    elif name == "sklearn.get_config()":
        sys.modules["sklearn"].set_config(**value)
    else:
        sys.modules["torch"].set_default_dtype(value)


def _described(name, old, new):
    if isinstance(old, dict):
        return f"{name} ({', '.join(sorted(key for key in old | new if old.get(key) != new.get(key)))})"
    return name


class Isolation:
    """State at the beginning of a test; ``restore`` returns what the test left changed."""

    def __init__(self):
        modules = emulated_modules()
        _start_anew(modules)
        self.modules = [(module, dict(vars(module))) for module in modules]
        self.process = _process()

    def restore(self):
        left = []
        for module, before in self.modules:
            now = vars(module)
            for name in [*before, *(now.keys() - before.keys())]:
                new, old = now.get(name), before.get(name)
                # a submodule becomes a name of its package when it is imported
                if new is old or name in _KEPT or (name not in before and isinstance(new, ModuleType)):
                    continue
                left.append(f"{module.__name__}.{name}")
                if name in before:
                    now[name] = old
                else:
                    del now[name]
        now = _process()
        for name, old in self.process.items():
            if now[name] != old:
                left.append(_described(name, old, now[name]))
                _put_back(name, old)
        _start_anew(emulated_modules())  # some were imported meanwhile
        return left
