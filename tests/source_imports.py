"""Who imports whom, read from the package's sources."""

import ast


def module_name(path, source):
    parts = ["sparsekit", *path.relative_to(source).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts), parts[-1] == "__init__"


def imports(text, name, is_package):
    """(imported module or name in full, whether at module level) of every import in a source text."""
    found = []

    def visit(node, top):
        if isinstance(node, ast.Import):
            found.extend((alias.name, top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = name.split(".") if is_package else name.split(".")[:-1]
                package = package[: len(package) - (node.level - 1)]
                base = ".".join([*package, base] if base else package)
            found.extend((f"{base}.{alias.name}", top) for alias in node.names)
        inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        # for type checkers only: nothing is imported when it runs
        inside |= isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse
        for child in ast.iter_child_nodes(node):
            visit(child, top and not inside)

    visit(ast.parse(text), True)
    return found


def python_files(source):
    files = sorted(source.rglob("*.py"))
    assert files
    return files


def circles(arrows):
    """Names that lead to themselves over others, as imports and includes may."""
    left = {name: set(targets) & arrows.keys() for name, targets in arrows.items()}
    while True:
        free = {name for name, targets in left.items() if not targets & left.keys()}
        if not free:
            return sorted(left)
        left = {name: targets for name, targets in left.items() if name not in free}
