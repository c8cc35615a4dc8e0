"""The place of builds for one torch in the cache."""

import os
import re
import types

import pytest

from etude.recording import native_recording, torch_cache


def test_whatever_the_recorder_includes_counts():
    """Otherwise a changed header would leave an older recorder in the cache."""
    tree = torch_cache.source()
    counted = {path.relative_to(tree).as_posix() for path in torch_cache._files(tree, torch_cache.RECORDER)}
    found, todo = set(), [path for path in counted if path.startswith("src/torch/recorder/")]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += re.findall(r'#include "(src/[^"]+)"', (tree / name).read_text())
    assert found <= counted
    assert "src/base/container/hash.h" in found


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A recorder in a separate cache."""
    monkeypatch.setenv("ETUDE_CACHE_DIR", str(tmp_path / "cache"))
    folder = torch_cache.folder(torch_cache.RECORDER, "/torch", "2.9.0")
    folder.mkdir(mode=0o700, parents=True)
    file = folder / "libetude_recorder.so"
    file.write_text("a library")
    return file


def look():
    return torch_cache.built(torch_cache.RECORDER, "/torch", "2.9.0")


def test_what_this_user_built_is_taken(built):
    assert look() == built
    built.unlink()
    assert look() is None


def test_others_cannot_put_anything_into_the_cache(built):
    """Folders made with a umask of 002 are closed before any file in them is used."""
    cache = built.parent.parent
    cache.chmod(0o775)
    assert look() == built and cache.stat().st_mode & 0o777 == 0o755
    cache.chmod(0o1777)  # like /tmp, where nobody can replace files of others
    assert look() == built and cache.stat().st_mode & 0o1777 == 0o1777


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_others_can_have_written_is_not_taken(built, what):
    path = built if what == "file" else built.parent
    path.chmod(0o777)
    with pytest.raises(torch_cache.Unsafe, match="found write permission for other users"):
        look()


def test_what_another_user_has_built_is_not_taken(built, monkeypatch):
    owner = built.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    if owner == 0:  # root, whom everybody must trust
        os.chown(built, 12345, -1)
    with pytest.raises(torch_cache.Unsafe, match="file of another user"):
        look()


def test_recorder_of_others_is_not_loaded(built):
    built.parent.chmod(0o777)
    torch = types.SimpleNamespace(__file__="/torch/__init__.py", __version__="2.9.0")
    with pytest.raises(native_recording.NoRecorder, match="refused to load the native recorder: .*found write permission for other users"):
        native_recording.load(torch, None)
