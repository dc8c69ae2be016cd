"""What compare writes is there whole or not at all, and what was there before stays until then."""

import os
import stat
import threading

import pytest

from sparsekit._compare import json_output, plot
from sparsekit._storage.replacing import replacing


def test_a_new_file_and_one_that_was_there(tmp_path):
    for content in ("first", "second"):
        with replacing(tmp_path / "out.json") as part:
            assert part.parent == tmp_path and part.suffix == ".json" and part.name != "out.json"
            part.write_text(content)
            assert not (tmp_path / "out.json").exists() or (tmp_path / "out.json").read_text() == "first"
        assert (tmp_path / "out.json").read_text() == content
        assert os.listdir(tmp_path) == ["out.json"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "out.csv"
    for expected in ([], ["out.csv"]):
        with pytest.raises(error), replacing(path) as part:
            part.write_text("half of")
            raise error
        assert os.listdir(tmp_path) == expected
        path.write_text("kept")
    assert path.read_text() == "kept"


@pytest.mark.skipif(os.name != "posix", reason="permissions, links and pipes of POSIX")
def test_links_permissions_and_pipes(tmp_path):
    there = tmp_path / "there.json"
    there.write_text("old")
    there.chmod(0o640)
    (tmp_path / "link.json").symlink_to(there)
    with replacing(tmp_path / "link.json") as part:
        part.write_text("new")
    assert (tmp_path / "link.json").is_symlink() and there.read_text() == "new"
    assert stat.S_IMODE(there.stat().st_mode) == 0o640
    umask = os.umask(0o022)
    os.umask(umask)
    with replacing(tmp_path / "fresh.json") as part:
        part.write_text("new")
    assert stat.S_IMODE((tmp_path / "fresh.json").stat().st_mode) == 0o666 & ~umask
    os.mkfifo(tmp_path / "pipe")
    said = []
    reader = threading.Thread(target=lambda: said.append((tmp_path / "pipe").read_text()), daemon=True)
    reader.start()
    with replacing(tmp_path / "pipe") as part:
        part.write_text("through")
    reader.join(timeout=60)
    assert said == ["through"] and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_takes_no_new_files(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("old")
    tmp_path.chmod(0o500)
    try:
        with replacing(path) as part:
            part.write_text("new")
        with pytest.raises(PermissionError), replacing(tmp_path / "other.json"):
            pytest.fail("the file was written")
    finally:
        tmp_path.chmod(0o700)
    assert path.read_text() == "new"


def test_everything_is_written_so(tmp_path, monkeypatch):
    """JSON that breaks off, and a picture whose writing fails."""
    for name in ("out.json", "out.png"):
        (tmp_path / name).write_text("kept")
    with pytest.raises(TypeError):
        json_output.write_json(tmp_path / "out.json", {"a": 1, "b": object()})

    def fails(*args, **kwargs):
        raise OSError("no space left on device")

    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda self, path, **options: (path.write_text("half"), fails()))
    with pytest.raises(OSError, match="no space"):
        plot.plot([], tmp_path / "out.png")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        ("out.json", "out.png"), "kept"
    )
