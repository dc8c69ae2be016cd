"""The README's example runs as printed, and what the README names exists."""

import re
from importlib.util import find_spec

import sparsekit


def test_the_example_runs(checkout, run_python):
    text = (checkout / "README.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(example.splitlines()) <= 16
    lines = run_python(example).splitlines()
    accuracy = float(re.match(r"accuracy ([\d.]+), features: \w", lines[0])[1])
    assert accuracy > 0.93
    objective, gap = re.match(r"objective ([\d.]+), at most ([\d.e+-]+) above", lines[1]).groups()
    assert 0 < float(gap) < 0.01 * float(objective)


def test_the_table_lists_every_public_name(checkout):
    text = (checkout / "README.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert listed == set(sparsekit.__all__) - {"__version__"}
    modules = re.findall(r"^\| `sparsekit\.(\w+)` \| (.*) \|$", text, re.MULTILINE)
    for module, description in modules:
        if module == "torch" and find_spec("torch") is None:
            continue  # tests/test_torch.py says that it is left out
        for name in re.findall(r"`(\w+)`", description):
            assert name in getattr(sparsekit, module).__all__


def test_links_lead_to_files(checkout):
    for page in [checkout / "README.md", *sorted((checkout / "doc").glob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).is_file(), f"{page.name} links to {target}"
