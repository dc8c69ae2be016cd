"""The documentation's build.

    pip install ".[doc]"    # and torch, if its examples are to run
    sphinx-build -W --keep-going doc doc/_build/html
    python doc/check_links.py doc/_build/html

The build runs every example, for minutes; with SPARSEKIT_DOC=quick in the environment it runs two.
The pages are Markdown that reads well in the repository too, so the tree of the site stands here only.
Nothing is fetched: formulas are MathML, links to other projects' documentation are taken only on request
(SPARSEKIT_DOC_LINKS=1).
"""

import importlib.util
import os
import re
import sys
import tomllib
import warnings
from pathlib import Path

from sphinx.ext.autodoc.mock import _MockObject

import sparsekit

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
import gallery  # noqa: E402

PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
QUICK = os.environ.get("SPARSEKIT_DOC") == "quick"

project = "sparsekit"
author = "The sparsekit developers"
copyright = "the sparsekit developers"
version = release = sparsekit.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "mathml",
]
exclude_patterns = ["_build", "**/README.md"]
templates_path = ["_templates"]
root_doc = "index"
default_role = "py:obj"
nitpicky = True
# `a` may be anything; a role names something that exists, here or in another project
nitpick_ignore_regex = [("py:obj", ".*"), ("py:.*", r"(sklearn|scipy|numpy|matplotlib|pandas|torch)\..*")]
if os.environ.get("SPARSEKIT_DOC_LINKS"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
    }

# -- the tree of the site: pages under each page --

TREE = {
    "index": [
        "Choose a model <choose_a_model>",
        "Tune it <tune>",
        "Explain it <explain>",
        "Large data <large_data>",
        "GPU <gpu>",
        "Examples <auto_examples/index>",
        "Reference <api/index>",
        "For maintainers <architecture>",
    ],
    "choose_a_model": [
        "l1_models",
        "families",
        "bounded",
        "sparsemax",
        "extreme_softmax",
        "lp_sparsemap",
        "sequence_tagger",
        "nqn",
        "coming_from",
    ],
    "large_data": ["saved_models"],
    "architecture": ["contributing"],
}


def add_toctree(app, docname, content):
    """Append the page's part of TREE, and turn links to files of the repository into links to their pages."""
    if app.env.doc2path(docname).suffix != ".md":
        return
    content[0] = re.sub(r"\]\(\.\./examples/(\w+)\.py\)", r"](auto_examples/\1.rst)", content[0])
    content[0] = content[0].replace("](../README.md)", "](index.md)")
    repository = f"{PROJECT['urls']['Repository']}/blob/main/"
    content[0] = re.sub(r"\]\(\.\./(benchmarks/|\w+\.md)", rf"]({repository}\1", content[0])
    if docname in TREE:
        content[0] += "\n".join(["", "", "```{toctree}", ":hidden:", "", *TREE[docname], "```", ""])


# -- pages --

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline"]
# ```math is what GitHub draws
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
myst_update_mathjax = False
html_math_renderer = "mathml"

toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings name the types
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False  # the template lists them
numpydoc_xref_param_type = False
if importlib.util.find_spec("torch") is None:
    autodoc_mock_imports = ["torch"]
    # annotations such as Tensor | None are evaluated when sparsekit.torch is imported
    _MockObject.__or__ = _MockObject.__ror__ = lambda self, other: self
    # and `with torch.inference_mode():` runs then
    _MockObject.__enter__, _MockObject.__exit__ = lambda self: self, lambda self, *error: None

# -- gallery --

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": gallery.pattern(QUICK),
    "reset_argv": "gallery.arguments",
    "doc_module": ("sparsekit",),
    "backreferences_dir": "api/backreferences",
    "prefer_full_module": set(),
    "within_subsection_order": "gallery.Order",
    "default_thumb_file": str(HERE / "_static" / "logo.svg"),
    "download_all_examples": False,
    "show_signature": False,
    # what is printed, not what the last line is worth
    "capture_repr": (),
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1,
    "plot_gallery": "True",
}
warnings.filterwarnings("ignore", category=UserWarning, message=".*non-interactive.*")

# -- theme --

html_theme = "pydata_sphinx_theme"
html_title = f"sparsekit {release}"
html_static_path = ["_static"]
html_css_files = ["sparsekit.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": html_title, "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "github_url": PROJECT["urls"]["Repository"],
    "header_links_before_dropdown": 9,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "tune": [], "explain": [], "gpu": []}


def setup(app):
    app.connect("source-read", add_toctree)
