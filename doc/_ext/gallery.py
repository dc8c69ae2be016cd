"""How the gallery runs the examples."""

import importlib.util
import tempfile
from functools import cache
from pathlib import Path

# those that say that they need PyTorch where it is not: better shown without being run
TORCH = ("alignment_attention", "dependency_parsing", "linear_assignment", "listops", "sparse_attention")
# all that the quick build runs
SHORT = ("bounded_demand", "regularization_path")
QUICK = {"alignment_attention": ["--quick"], "listops": ["--quick"]}
# the option before the name of the picture that they write; the gallery takes it from the open figures
PICTURE = {"alignment_attention": ["--plot"], "bounded_demand": [], "sparse_attention": ["--plot"]}
# the order of the gallery; what is not named comes last
ORDER = (
    "regularization_path",
    "text_pipeline",
    "bounded_demand",
    "plot_displays",
    "next_word",
    "sparse_attention",
    "linear_assignment",
    "dependency_parsing",
    "alignment_attention",
    "listops",
)


class Order:
    """Sort key of the examples."""

    def __init__(self, folder):
        pass

    def __call__(self, file):
        name = Path(file).stem
        return ORDER.index(name) if name in ORDER else len(ORDER), name


@cache
def folder():
    return tempfile.TemporaryDirectory(prefix="sparsekit-gallery-")


def arguments(gallery_conf, script_vars):
    """The command line of an example: its short version, and no picture beside the source."""
    name = Path(script_vars["src_file"]).stem
    words = list(QUICK.get(name, []))
    if name in PICTURE:
        words += [*PICTURE[name], str(Path(folder().name) / f"{name}.png")]
    return words


def pattern(quick):
    """Regular expression of the files that are run."""
    names = "|".join(SHORT) if quick else r"\w+"
    torch = importlib.util.find_spec("torch") is not None
    return r"[\\/]" + ("" if torch else rf"(?!{'|'.join(TORCH)})") + rf"(?:{names})\.py$"
