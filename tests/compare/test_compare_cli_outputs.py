"""``sparsekit compare``: the files it writes, named pipes, closed streams, readers that go away."""

import json
import os
import shlex
import stat
import sys

import pytest
from children import run_limited
from compare_problems import FAST

from sparsekit._compare import cli as _cli
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


@pytest.mark.parametrize("option", ["--plot", "--json"])
def test_a_file_that_cannot_be_written_in_the_end_is_named(data, capsys, option, monkeypatch):
    """Where the rights that were asked for beforehand were not all: lists of rights, a full disk."""
    if option == "--plot":
        pytest.importorskip("matplotlib")
    path = data.parent / "out.png"

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(
        f"sparsekit._compare.{'plot' if option == '--plot' else 'json_output'}.replacing", refuse
    )
    assert main(["compare", str(data), option, str(path), "--lambda-ratio", "0.5", *FAST]) == 1
    out, err = capsys.readouterr()
    assert "Relative gap" in out and f"{option} {path}: cannot be written: Permission denied" in err
    if option == "--json":
        assert main(["compare", str(data), "--path", "3", option, str(path), *FAST]) == 1
        assert f"{option} {path}: cannot be written: Permission denied" in capsys.readouterr().err


def test_asking_leaves_nothing_behind(tmp_path):
    """What is asked beforehand makes no file and changes none."""
    assert _cli._why_not_writable(tmp_path / "new.csv") is None
    assert list(tmp_path.iterdir()) == []
    old = tmp_path / "old.csv"
    old.write_text("kept")
    assert _cli._why_not_writable(old) is None and old.read_text() == "kept"


def test_asking_does_not_touch_a_link_that_leads_nowhere(tmp_path):
    link = tmp_path / "link.csv"
    try:
        link.symlink_to(tmp_path / "new.csv")
    except OSError as error:  # Windows asks for a privilege
        pytest.skip(f"no symbolic links: {error}")
    assert _cli._why_not_writable(link) is None
    assert list(tmp_path.iterdir()) == [link] and link.is_symlink()
    lost = tmp_path / "lost.csv"
    lost.symlink_to(tmp_path / "no" / "new.csv")
    assert "no such folder" in _cli._why_not_writable(lost)
    ring = tmp_path / "ring.csv"
    ring.symlink_to(ring)
    assert "cannot be written" in _cli._why_not_writable(ring)
    assert ring.is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are Unix's")
def test_asking_does_not_wait_for_the_reader_of_a_named_pipe(tmp_path):
    """Who opens one for writing waits until somebody reads."""
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    code = (
        "import sys; from sparsekit._compare.cli import Path, _why_not_writable as ask; "
        "print(ask(Path(sys.argv[1])))"
    )
    done = run_limited([sys.executable, "-P", "-c", code, pipe], timeout=60)
    assert done.stdout == "None\n", done.stderr
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="the shell is Unix's")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.thorough(keep=1)
def test_closed_streams_are_no_traceback(data, closed):
    """As `sparsekit compare >&-` in a shell: Python then has no sys.stdout."""
    argv = [*COMMAND, "compare", data, *FAST, "--lambda-ratio", "0.5", "--json", data.parent / "out.json"]
    line = f"{shlex.join(map(str, argv))} {closed}"
    done = run_limited(["sh", "-c", line], timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads((data.parent / "out.json").read_text())["cells"][0]["tracks"]) == 2


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
