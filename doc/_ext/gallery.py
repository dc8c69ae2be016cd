"""How the gallery runs the examples."""

import importlib.util
import tempfile
from functools import cache
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
# all that the quick build runs
SHORT = ("bounded_demand", "regularization_path")
# the order of the gallery; what is not named comes last
ORDER = (
    "regularization_path",
    "stability_selection",
    "text_pipeline",
    "claims_with_exposure",
    "bounded_demand",
    "plot_displays",
    "next_word",
    "sparse_attention",
    "linear_assignment",
    "dependency_parsing",
    "alignment_attention",
    "listops",
    "sharp_minima",
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
    """The command line of an example: its short version, and no picture next to the source."""
    path = Path(script_vars["src_file"])
    source, picture = path.read_text(encoding="utf-8"), str(Path(folder().name) / f"{path.stem}.png")
    words = ["--quick"] if '"--quick"' in source else []
    if '"--plot"' in source:
        words += ["--plot", picture]
    elif path.stem == "bounded_demand":
        words.append(picture)
    return words


def pattern(quick):
    """Regular expression of the files that are run."""
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    if quick:
        names &= set(SHORT)
    if importlib.util.find_spec("torch") is None:
        # those that need it would only say so: better shown without being run
        names = {name for name in names if "import torch" not in (EXAMPLES / f"{name}.py").read_text("utf-8")}
    return rf"[\\/](?:{'|'.join(sorted(names))})\.py$"
