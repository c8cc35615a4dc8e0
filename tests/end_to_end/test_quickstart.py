"""README's first command on a machine that contains only its own installations."""

import os
import pathlib
import shutil
import stat
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Files of the tree that configuring needs.
PARTS = ["CMakeLists.txt", "CMakePresets.json", "cmake", "docs", "python", "quickstart", "src", "tests", "bench", "tools"]
ONLY_TESTS_NEED = ["GTest", "Protobuf", "benchmark"]

# Configures as if the requirements of tests were missing, and stops before building.
CMAKE = """#!/bin/sh
case "$1" in
  --build) exit 1 ;;
esac
"{cmake}" "$@" {absent} && echo done >"{configured}"
"""


def test_the_packages_of_the_tests_are_not_needed(tmp_path):
    tree, programs, configured = tmp_path / "etude", tmp_path / "bin", tmp_path / "configured"
    tree.mkdir()
    programs.mkdir()
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, tree / part)
    absent = " ".join(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ONLY_TESTS_NEED)
    wrapper = programs / "cmake"
    wrapper.write_text(CMAKE.format(cmake=shutil.which("cmake"), absent=absent, configured=configured))
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    env = {**os.environ, "ETUDE_TORCH_PYTHON": sys.executable, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run([tree / "quickstart"], text=True, capture_output=True, env=env, cwd=tmp_path)
    assert configured.exists(), done.stderr
    assert "the build failed" in done.stderr
