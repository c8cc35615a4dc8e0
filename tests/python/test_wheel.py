"""The wheel as users install it: built by the build backend, and installed in several places."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
from conftest import CAPTURE, DEVICE, HOST, TOOL, command

PROJECT = pathlib.Path(__file__).resolve().parents[2]
TORCH_PYTHON = os.environ.get("ETUDE_TORCH_PYTHON")
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"

pytest.importorskip("scikit_build_core")

PROGRAM = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train():
    optimizer.zero_grad()
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()

"""
# The example of the page docs/python.md.
(RECORDING,) = re.findall(r"```python\n(.*?)```", (PROJECT / "docs/python.md").read_text(), re.S)


def run(*arguments, code=0, cwd=None, **environment):
    """Returns the output of a program without access to the build folder."""
    keep = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("ETUDE_")}
    done = subprocess.run(
        [str(a) for a in arguments], cwd=cwd, env={**keep, **environment},
        capture_output=True, text=True, timeout=850,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def build(target, settings, folder):
    """Calls the build backend like pip and build do, with the installed packages."""
    backend = f"from scikit_build_core import build; build.build_{target}({str(folder)!r}, {settings!r})"
    # Uses the flags and the compiler's name of the tested build, whose cache has most of it.
    run(sys.executable, "-c", backend, cwd=PROJECT, CXX=os.environ.get("ETUDE_CXX", "c++"))
    (made,) = folder.glob("etude-*")
    return made


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    # The folder is next to the build folder and is kept, so unchanged files are not compiled again. The compiler's
    # cache has the build's files, also by relative paths.
    settings = ["-C", "cmake.define.ETUDE_WERROR=ON"]
    charts = TOOL.parent.parent / "chart-library/echarts.min.js"
    if charts.exists():
        settings += ["-C", f"cmake.define.ETUDE_CHART_LIBRARY={charts}"]
    folder = tmp_path_factory.mktemp("wheel")
    # Uses the flags and the compiler's name of the tested build, whose cache has most of it.
    told = run(PROJECT / "tools/wheel.sh", "--python", sys.executable, "-o", folder, *settings, CXX=os.environ.get("ETUDE_CXX", "c++"))
    (made,) = folder.glob("etude-*")
    assert f"{PYTHON} -m pip install {made}" in told
    return made


def pip_install(*arguments):
    run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", *arguments)


def make_venv(folder, wheel, *sites):
    """Makes a virtual environment with the wheel. numpy, or torch, come from `sites`."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "others.pth").write_text("\n".join(map(str, sites)))
    pip_install("--prefix", folder, wheel)
    return folder


def sites_of(python):
    return run(python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip()


@pytest.fixture(scope="session")
def venv(wheel, tmp_path_factory):
    return make_venv(tmp_path_factory.mktemp("venv") / "with space", wheel, sites_of(sys.executable))


def test_the_source_distribution_is_complete(tmp_path):
    with tarfile.open(build("sdist", {}, tmp_path)) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True)
    missing = [name for name in tracked.stdout.splitlines() if name not in held and not name.startswith(".")]
    assert missing == [] and len(held) > 500 and "PKG-INFO" in held


def test_what_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    for name in ("__init__.py", "py.typed", "_core.pyi", "hook/sitecustomize.py", "recording/session.py",
                 "torch_source/CMakeLists.txt", "torch_source/src/torch/replayer.cc",
                 "torch_source/src/report/assets/page.css", "torch_source/docs/suite/calibration.json",
                 "torch_source/docs/suite/variation.json"):  # fmt: skip
        assert f"etude/{name}" in held, name
    assert {"etude_record.pth", "_etude_record.py"} <= held
    assert any(name.endswith(".data/scripts/etude") for name in held)
    assert not [name for name in held if "_test.cc" in name or "__pycache__" in name]


def test_commands_of_the_wheel(venv):
    assert "usage: etude COMMAND" in run(venv / "bin/etude", "--help")
    for arguments in (["info", HOST], ["stats", HOST, "--json"], ["info", CAPTURE], ["link", "--help"]):
        assert run(venv / "bin/etude", *arguments) == command(*arguments)


def test_every_command_without_torch(venv, tmp_path):
    etude = venv / "bin/etude"
    for rank in (0, 1):
        shutil.copy(HOST, tmp_path / f"host.{rank}.json.gz")
        shutil.copy(DEVICE, tmp_path / f"device.{rank}.json.gz")
    for line in (
        "link .", "convert .", "validate .", "breakdown .", "critical-path .", "memory .", "diff . .",
        "report . -o report.html", "slice . --op aten::mm -o part", "merge . --clocks keep -o part/all.json",
        "timeline linked.0.json.gz -o timeline.pftrace", "graph linked.0.json.gz -o graph.dot",
        "jsonize chakra.0.et -o et.json", "generate microbench all_reduce --ranks 2 -o generated",
        "compat --help", "compare --help",
    ):  # fmt: skip
        run(etude, *line.split(), cwd=tmp_path)


def test_import_from_the_wheel(venv):
    code = f"import etude; print(len(etude.open({str(HOST)!r}).to_arrow()), etude.__file__)"
    assert run(venv / "bin/python", "-c", code).startswith(f"224 {venv}")


def test_replay_needs_torch(venv, tmp_path):
    said = run(venv / "bin/etude", "replay", CAPTURE, code=4, ETUDE_CACHE_DIR=str(tmp_path / "cache"))
    assert f"this command requires PyTorch, which is missing in {venv}/bin/{PYTHON}" in said
    assert not (tmp_path / "cache").exists()


def test_a_folder_of_its_own(wheel, tmp_path):
    pip_install("--target", tmp_path / "target", wheel)
    etude = tmp_path / "target/bin/etude"
    assert run(etude, "info", HOST) == command("info", HOST)
    said = run(etude, "record", "-o", tmp_path / "job", "--", sys.executable, "-c", "pass", code=1)
    assert "the program did not import torch" in said  # the hook was found, and ran
    said = run(etude, "replay", CAPTURE, code=4, PATH=f"{pathlib.Path(sys.executable).parent}:/usr/bin:/bin")
    assert "this command requires PyTorch" in said


def test_a_prefix_of_its_own(wheel, tmp_path):
    pip_install("--prefix", tmp_path / "usr", wheel)
    assert run(tmp_path / "usr/bin/etude", "info", HOST) == command("info", HOST)
    said = run(tmp_path / "usr/bin/etude", "record", "-o", tmp_path / "job", "--", sys.executable, "-c", "1", code=1)
    assert "the program did not import torch" in said


@pytest.mark.skipif(not TORCH_PYTHON, reason="ETUDE_TORCH_PYTHON does not say which Python has torch")
def test_record_from_the_wheel(wheel, tmp_path):
    venv = make_venv(tmp_path / "venv", wheel, sites_of(TORCH_PYTHON))
    (tmp_path / "program.py").write_text(PROGRAM + "for _ in range(12): train()")
    (tmp_path / "block.py").write_text(PROGRAM + RECORDING)
    counts = ("--warmup", 2, "--steps", 3)
    run(venv / "bin/etude", "record", "-o", "job", *counts, "--", venv / "bin/python", "program.py", cwd=tmp_path)
    run(venv / "bin/python", "block.py", cwd=tmp_path)
    for folder in ("job", "capture"):
        assert json.loads((tmp_path / folder / "job.json").read_text())["versions"]["etude"]
        ranks = f"import etude; job = etude.open({folder!r}); print(job.ranks, len(etude.breakdown(job)['steps']) > 0)"
        assert run(venv / "bin/python", "-c", ranks, cwd=tmp_path) == "[0] True\n"
    # And with only the environment.
    said = run(venv / "bin/python", "program.py", cwd=tmp_path, ETUDE_RECORD="dir=duty,every=5,recorder=observers")
    assert said == ""
    assert run(venv / "bin/etude", "info", "duty/step-000000010", cwd=tmp_path).startswith("duty/step-000000010")
