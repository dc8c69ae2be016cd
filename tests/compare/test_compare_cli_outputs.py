"""``sparsekit compare``: the files it writes, and readers that go away."""

import os
import sys

import pytest
from children import run_limited
from compare_problems import FAST

from sparsekit._compare.cli import main

COMMAND = [
    sys.executable,
    "-P",
    "-c",
    "import sys; from sparsekit._compare.cli import main; sys.exit(main())",
]


@pytest.mark.parametrize("suffix", [".xyz", "", ".svm"])
def test_unknown_pictures_are_refused_before_the_work(data, capsys, suffix):
    pytest.importorskip("matplotlib", reason="knows which pictures it can write")
    assert main(["compare", str(data), "--plot", str(data.parent / f"curves{suffix}"), *FAST]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "--plot" in err and "known are" in err and ".png" in err and ".svg" in err
    assert not list(data.parent.glob("curves*"))


@pytest.mark.parametrize("option", ["--plot", "--json"])
def test_files_that_cannot_be_written_are_refused_before_the_work(data, capsys, option):
    if option == "--plot":
        pytest.importorskip("matplotlib", reason="knows which pictures it can write")
    # a folder with the file's name, which root may not write either
    taken = data.parent / "taken.png"
    taken.mkdir()
    assert main(["compare", str(data), option, str(taken), *FAST]) == 2
    out, err = capsys.readouterr()
    assert out == "" and f"{option} {taken}: cannot be written" in err


@pytest.mark.parametrize("argv", [["compare"], ["compare", "--help"], ["versions"]], ids=" ".join)
@pytest.mark.thorough(keep=1)
def test_a_reader_that_goes_away_is_no_traceback(data, argv):
    """As `sparsekit compare | head -n 1` does, without the race: the pipe is closed from the start."""
    files = [str(data), *FAST, "--lambda-ratio", "0.5"] if argv == ["compare"] else []
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run_limited([*COMMAND, *argv, *files], timeout=200, stdout=writing)
    finally:
        os.close(writing)
    assert done.stderr == ""
    # argparse itself ignores that nobody reads a long text
    assert done.returncode in ((0, 141) if "--help" in argv else (141,))
