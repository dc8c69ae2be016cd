"""What the API pages list, and names as links to them."""

import re

from docutils import nodes
from sphinx.util.nodes import make_refnode

# metadata routing is scikit-learn's, the same for every estimator, and described there
ROUTING = re.compile(r"set_\w+_request|get_metadata_routing")


def skip_member(app, what, name, thing, skip, options):
    """Leave out what PyTorch's modules inherit, and scikit-learn's metadata routing."""
    if str(getattr(thing, "__module__", "")).startswith("torch") or ROUTING.fullmatch(name):
        return True
    return None


def without_labels(app, what, name, thing, options, lines):
    """Inherited docstrings refer to sections of scikit-learn's guide: keep the words."""
    if not str(getattr(thing, "__module__", "")).startswith("sparsekit"):
        lines[:] = [re.sub(r":(?:ref|term):`([^`<]*?)(?: *<[^`]*>)?`", r"\1", line) for line in lines]


def resolve_bare_name(app, env, node, contnode):
    """A name without its module means the public object of that name, wherever it is written."""
    if node.get("refdomain") != "py":
        return None
    domain, target = env.get_domain("py"), "." + node["reftarget"]
    found = [name for name in domain.objects if name.endswith(target)]
    # a bare name is a class or a function, not a method of some class
    found = [name for name in found if name.count(".") < target.count(".") + 2]
    if len(found) != 1:
        return None
    docname = node.get("refdoc", env.docname)
    return domain.resolve_xref(env, docname, app.builder, node["reftype"], found[0], node, contnode)


def link_names(app, doctree, docname):
    """In the guides, `a public name` in code is a link to its page."""
    if app.env.doc2path(docname).suffix != ".md":
        return
    objects = app.env.get_domain("py").objects
    for literal in list(doctree.findall(nodes.literal)):
        bare = literal.astext().removeprefix("sparsekit.").removesuffix("()")
        # sparsekit.torch is left out: its names are those of the array functions
        candidates = (
            f"sparsekit.{module}{bare}"
            for module in ("", "inspection.", "metrics.", "optimize.", "datasets.")
        )
        name = next((name for name in candidates if name in objects), None)
        if name is not None and not isinstance(literal.parent, nodes.reference):
            entry = objects[name]
            link = make_refnode(app.builder, docname, entry.docname, entry.node_id, literal.deepcopy(), name)
            literal.replace_self(link)


def setup(app):
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", without_labels)
    app.connect("doctree-resolved", link_names)
    app.connect("missing-reference", resolve_bare_name)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
