"""Operators whose code is missing: the remaining part of the step, and time that replaces them."""

import json
import os
import subprocess
import sys

import pytest
from forked_python import LIGHT

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")

# The filter takes most of a step, also on a busy machine, and calls operators.
PROGRAM = LIGHT + """
import torch
from torch import nn

light_torch.load()
torch.set_num_threads(1)


@torch.library.custom_op("secret::filter", mutates_args=())
def filter(x: torch.Tensor) -> torch.Tensor:
    values = x.detach().numpy().copy()
    for _ in range(600):
        values[1:-1] = (values[:-2] + values[1:-1] + values[2:]) / 3
    return torch.from_numpy(values) * 2.0


filter.register_autograd(lambda context, gradient: (gradient, None))
model = nn.Linear(16, 128)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(400, 16)
for _ in range(12):
    optimizer.zero_grad()
    filter(model(x)).sum().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stand_in")
    (folder / "program.py").write_text(PROGRAM)
    record = [ETUDE, "record", "-q", "--recorder", "native", "--warmup", "2", "--steps", "3", "-o", "job"]
    subprocess.run([*record, "--", sys.executable, "program.py"], cwd=folder, check=True)
    return folder


def replay(folder, *options, code):
    line = [ETUDE, "replay", "job", "--json", "--warmup", "1", "--iterations", "3", *options]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_own_code_is_not_covered(folder):
    report = replay(folder, code=1)
    (row,) = report["skipped"]
    assert row["op"] == "secret::filter" and row["count"] == 1 and "only the operators that it called were run" in row["reason"]
    assert row["time_share"] > 0.5
    assert abs(report["coverage"]["time"] + row["time_share"] - 1) < 1e-9
    assert report["coverage"]["ops"] < 1
    assert report["same_kernels"] < 1 and report["kernels"]["same_by_time"] < 0.7
    assert "secret::filter" in [missing["op"] for missing in report["kernels"]["missing"]]
    # Its time is among the gaps, because nothing else takes as long.
    assert 0 < row["stand_in_ms"] < report["gaps"]["ms"]
    replay(folder, "--allow-skips", code=0)


def test_time_that_stands_in_is_accepted_where_it_is_asked_for(folder):
    report = replay(folder, "--gaps", "recorded", "--stand-in", "secret::filter", code=0)
    assert report["skipped"][0]["stand_in_ms"] > 0 and report["coverage"]["time"] < 0.5
    done = subprocess.run([ETUDE, "replay", "job", "--stand-in", "secret::filter"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 2 and "--stand-in requires --gaps recorded" in done.stderr
    done = subprocess.run([ETUDE, "benchmark", "job", "-o", "no", "--stand-in", "secret::filte"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 2 and "secret::filter" in done.stderr and not (folder / "no").exists()


def test_an_operator_that_is_skipped_may_be_stood_in_for(folder):
    """Its time passes as a gap, but only if requested."""
    skip = ["--gaps", "recorded", "--skip", "aten::linear"]
    plain = replay(folder, *skip, code=1)
    stand_in = replay(folder, *skip, "--stand-in", "aten::linear", "--stand-in", "secret::filter", code=0)
    assert stand_in["gaps"]["ms"] > plain["gaps"]["ms"]
    assert all(row["stand_in_ms"] > 0 for row in stand_in["skipped"])


def test_a_benchmark_says_what_stands_in(folder):
    line = [ETUDE, "benchmark", "job", "-o", "bench", "--iterations", "1"]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    readme = (folder / "bench/README.md").read_text()
    assert "replaced by a wait of" in readme and "of the time" in readme and "secret" not in readme
    assert subprocess.run([*line, "--stand-in", "secret::filter"], cwd=folder, capture_output=True).returncode == 0
