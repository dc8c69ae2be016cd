"""The README's example runs as printed, and what the README names exists."""

import re

import sparsekit


def test_the_example_runs(checkout, run_python):
    text = (checkout / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(example.splitlines()) <= 16
    lines = run_python(example).splitlines()
    accuracy = float(re.match(r"accuracy ([\d.]+), features: \w", lines[0])[1])
    assert accuracy > 0.93
    objective, gap = re.match(r"objective ([\d.]+), at most ([\d.e+-]+) above", lines[1]).groups()
    assert 0 < float(gap) < 0.01 * float(objective)


def test_the_table_lists_every_estimator(checkout):
    """doc/api has every public name (tests/project/test_documentation.py)."""
    text = (checkout / "README.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text, re.MULTILINE)
    listed = set(re.findall(r"`(\w+)`", " ".join(cells)))
    public = {name: getattr(sparsekit, name) for name in sparsekit.__all__ if name != "__version__"}
    assert listed == {name for name, value in public.items() if hasattr(value, "fit")}


def test_it_is_one_page(checkout):
    text = (checkout / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) < 800 and text.count("![") == 1
    assert not re.search(r"@[A-Z]+@", text)  # a figure that was to be filled in
    assert len(re.findall(r"^pip install", text, re.MULTILINE)) == 2  # the two commands


def test_links_lead_to_files(checkout):
    for page in [checkout / "README.md", *sorted((checkout / "doc").glob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), f"{page.name} links to {target}"
