"""The first use of a command that needs libtorch: the torch, the cache, a single build. A stand-in for cmake records
its arguments, because a real build takes minutes and is tested by the build of etude-torch."""

import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import time

import pytest

import etude

PACKAGE = pathlib.Path(etude.__file__).parent

# Records its arguments. The second call "builds" a program that prints its own arguments.
CMAKE = """#!/bin/sh
echo "$@" >> "$TEST/asked"
case $1 in
  -S) build=$4; mkdir -p "$build/bin"; [ ! -e "$TEST/broken" ] || { echo "CMake Error: broken"; exit 1; } ;;
  --build)
    touch "$TEST/building"
    while [ -e "$TEST/hold" ]; do sleep 0.05; done
    printf '#!/bin/sh\\necho "torch tool: $*"\\nexit 3\\n' > "$2/bin/etude-torch"
    chmod +x "$2/bin/etude-torch" ;;
esac
"""


class Installation:
    """The package as installed by a wheel, a torch of some version, and a stand-in for cmake."""

    def __init__(self, folder):
        self.folder = folder
        self.site = folder / "site"
        self.tools = folder / "tools"
        shutil.copytree(PACKAGE, self.site / "etude", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        (self.site / "etude/torch_source").mkdir(exist_ok=True)
        (self.site / "etude/torch_source/CMakeLists.txt").write_text("project(x)")
        self.tools.mkdir()
        self.put_cmake()
        self.put_torch("2.9.1+test")

    def put_cmake(self):
        (self.tools / "cmake").write_text(CMAKE)
        (self.tools / "cmake").chmod(0o755)

    def put_torch(self, version):
        torch = self.site / "torch"
        torch.mkdir(exist_ok=True)
        (torch / "__init__.py").write_text("raise ImportError('torch is not to be imported')")
        (torch / "version.py").write_text(f"__version__ = {version!r}\ncuda = None\n")

    def start(self, *arguments, path=None, **environment):
        start = "import sys; from etude import torch_tool; torch_tool.main(sys.argv[1:])"
        return subprocess.Popen(
            [sys.executable, "-c", start, *arguments],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={"PATH": path or f"{self.tools}:{os.environ['PATH']}", "PYTHONPATH": str(self.site),
                 "TEST": str(self.folder), "ETUDE_CACHE_DIR": str(self.folder / "cache"), **environment},
        )  # fmt: skip

    def run(self, *arguments, **environment):
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def asked(self):
        file = self.folder / "asked"
        return file.read_text().splitlines() if file.exists() else []

    def cached(self):
        """Returns the contents of the cache without logs and locks."""
        cache = self.folder / "cache"
        return sorted(p.name for p in cache.iterdir() if p.is_dir()) if cache.exists() else []


@pytest.fixture
def installation(tmp_path):
    return Installation(tmp_path)


def wait_for(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


def test_it_is_built_once_and_then_run(installation):
    code, out, err = installation.run("replay", "job", "a b")
    assert (code, out) == (3, "torch tool: replay job a b\n")
    assert "building etude-torch for torch 2.9.1+test, once" in err and "built in" in err
    configure, build = installation.asked()
    assert f"-DETUDE_TORCH_PYTHON={sys.executable}" in configure
    assert "--target etude_torch_tool" in build
    (name,) = installation.cached()
    assert name.startswith(f"etude-torch-{etude.__version__}-torch-2.9.1+test-")
    # Compiler and cmake are no longer needed.
    assert installation.run("replay", path="/nowhere") == (3, "torch tool: replay\n", "")
    assert len(installation.asked()) == 2


def test_another_torch_is_another_build(installation):
    installation.run("replay")
    installation.put_torch("2.10.0")
    assert installation.run("replay")[0] == 3
    assert len(installation.cached()) == 2
    (installation.site / "etude/torch_source/src").mkdir()
    (installation.site / "etude/torch_source/src/x.cc").write_text("int x;")
    assert installation.run("replay")[0] == 3
    assert len(installation.cached()) == 3


def test_without_torch(installation):
    shutil.rmtree(installation.site / "torch")
    code, out, err = installation.run("replay")
    assert (code, out) == (4, "") and "this command requires PyTorch" in err and "ETUDE_TORCH_PYTHON" in err
    assert sys.executable in err and "Traceback" not in err


def test_the_torch_of_another_python(installation):
    code, _, err = installation.run("replay", ETUDE_TORCH_PYTHON="/nowhere/python")
    assert code == 4 and "missing in /nowhere/python" in err
    other = installation.folder / "my python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    assert installation.run("replay", ETUDE_TORCH_PYTHON=str(other))[0] == 3
    assert f"-DETUDE_TORCH_PYTHON={other}" in installation.asked()[0]


def test_tools_that_are_missing_are_named_at_once(installation):
    code, out, err = installation.run("replay", path="/nowhere")
    assert (code, out) == (4, "")
    for tool in ("cmake", "pkg-config", "g++", "ninja"):
        assert tool in err
    code, _, err = installation.run("replay", CXX="c++ -nostdinc -I.")
    assert code == 4 and "simdjson.h (libsimdjson-dev)" in err and "zstd.h (libzstd-dev)" in err
    assert installation.asked() == [] == installation.cached()


def test_a_build_that_fails_leaves_its_log(installation):
    (installation.folder / "broken").touch()
    code, out, err = installation.run("replay")
    assert (code, out) == (4, "") and "CMake Error: broken" in err
    assert "CMake Error: broken" in pathlib.Path(err.rsplit("log: ")[-1].strip()).read_text()
    assert installation.cached() == []
    (installation.folder / "broken").unlink()
    assert installation.run("replay")[0] == 3


def test_a_cache_that_cannot_be_written(installation):
    code, out, err = installation.run("replay", ETUDE_CACHE_DIR="/dev/null/cache")
    assert (code, out) == (4, "") and "/dev/null/cache" in err and "ETUDE_CACHE_DIR" in err
    assert "Traceback" not in err


def test_the_cache_is_where_others_are(installation):
    home = installation.folder / "home"
    installation.run("replay", ETUDE_CACHE_DIR="", HOME=str(home))
    installation.run("replay", ETUDE_CACHE_DIR="", XDG_CACHE_HOME=str(home / "xdg"))
    assert (home / ".cache/etude").is_dir() and (home / "xdg/etude").is_dir()


def test_of_two_at_once_one_builds(installation):
    (installation.folder / "hold").touch()
    first = installation.start("replay", "1")
    wait_for((installation.folder / "building").exists)
    second = installation.start("replay", "2")
    line = second.stderr.readline()
    assert "waiting for another process" in line
    (installation.folder / "hold").unlink()
    assert first.communicate(timeout=60)[0] == "torch tool: replay 1\n"
    assert second.communicate(timeout=60)[0] == "torch tool: replay 2\n"
    assert first.returncode == second.returncode == 3 and len(installation.asked()) == 2


def test_ctrl_c_leaves_nothing(installation):
    (installation.folder / "hold").touch()
    process = installation.start("replay")
    wait_for((installation.folder / "building").exists)
    process.send_signal(signal.SIGINT)
    (installation.folder / "hold").unlink()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "") and "Traceback" not in err
    assert installation.cached() == []
    assert installation.run("replay")[0] == 3  # the lock is free


def test_only_the_owner_reaches_what_is_being_built(installation):
    (installation.folder / "hold").touch()
    process = installation.start("replay")
    wait_for((installation.folder / "building").exists)
    (work,) = [p for p in (installation.folder / "cache").iterdir() if p.is_dir()]
    assert stat.S_IMODE(work.stat().st_mode) == 0o700
    (installation.folder / "hold").unlink()
    process.communicate(timeout=60)
