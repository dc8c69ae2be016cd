"""What the API pages list, and bare names as references."""

import re

# metadata routing is scikit-learn's, the same for every estimator, and described there
ROUTING = re.compile(r"set_\w+_request|get_metadata_routing")


def skip_member(app, what, name, thing, skip, options):
    """Leave out what PyTorch's modules inherit, and scikit-learn's metadata routing."""
    if str(getattr(thing, "__module__", "")).startswith("torch") or ROUTING.fullmatch(name):
        return True
    return None


def resolve_bare_name(app, env, node, contnode):
    """A name without its module means the public object of that name, wherever it is written."""
    if node.get("refdomain") != "py" or "." in node["reftarget"]:
        return None
    domain = env.get_domain("py")
    found = [name for name in domain.objects if name.split(".")[-1] == node["reftarget"]]
    found = [name for name in found if name.count(".") <= 2 and name.startswith("sparsekit.")]
    if len(found) != 1:
        return None
    docname = node.get("refdoc", env.docname)
    return domain.resolve_xref(env, docname, app.builder, node["reftype"], found[0], node, contnode)


def setup(app):
    app.connect("autodoc-skip-member", skip_member)
    app.connect("missing-reference", resolve_bare_name)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
