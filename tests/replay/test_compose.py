"""Replays of composed traces: all operators run, on the recorded memory, and their time is compared."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from forked_python import LIGHT

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
TRACE = pathlib.Path(__file__).resolve().parent.parent / "data/modules.etude"


def compose(tmp_path, parts):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'[traces]\nnet = "{TRACE}"\n{parts}')
    subprocess.run([ETUDE, "compose", recipe, "-o", tmp_path / "composed.json"], check=True, capture_output=True)
    return tmp_path / "composed.json"


def replay(path, codes=(0,)):
    done = subprocess.run(
        [ETUDE, "replay", path, "--json", "--warmup", "0", "--iterations", "1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode in codes, done.stderr
    return json.loads(done.stdout)


def test_repetitions_run_on_the_memory_of_the_recording(tmp_path):
    recorded = replay(TRACE)
    report = replay(compose(tmp_path, "[[part]]\nrepeat = 3\n"))
    assert report["operators"]["total"] == 3 * recorded["operators"]["total"]
    assert report["skipped"] == []
    assert report["same_kernels"] == 1.0
    assert report["memory"]["outside_bytes"] == recorded["memory"]["outside_bytes"]
    assert recorded["expected"] is None
    expected = report["expected"]
    assert expected["ms"] > 0 and expected["operators_without_time"] == 0
    measured = report["replay"]["step_ms"]["wall"]["median"]
    assert expected["deviation"]["wall"] == pytest.approx(measured / expected["ms"] - 1)


def test_another_operator_runs_in_the_place_of_the_recorded_one(tmp_path):
    names = [row["op"] for row in replay_operators(compose(tmp_path, "[[part]]\n"))]
    assert "aten::relu" in names
    parts = '[[part]]\nreplace = { op = "aten::relu", with = "aten::tanh" }\n'
    path = compose(tmp_path, parts)
    names = [row["op"] for row in replay_operators(path)]
    assert "aten::tanh" in names and "aten::relu" not in names
    # An operator that PyTorch does not have is skipped and reported.
    path = compose(tmp_path, parts.replace("aten::tanh", "aten::nothing"))
    report = replay(path, codes=(1,))
    assert {row["op"] for row in report["skipped"]} == {"aten::nothing"}
    assert report["expected"]["ms"] is None and report["expected"]["deviation"]["wall"] is None


def replay_operators(path):
    done = subprocess.run(
        [ETUDE, "replay", path, "--json", "--per-op", "--warmup", "0", "--iterations", "1"],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)["per_operator"]


# A transformer block with its loss, for a batch and a length of sequences, and attention as a separate operator.
PROGRAM = LIGHT + """
import torch
from torch import nn

batch, length, flash = map(int, sys.argv[1:])
torch.manual_seed(0)
model = nn.Sequential(
    nn.Embedding(50, 16), nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), nn.Linear(16, 50))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(8):
    x = torch.randint(0, 50, (batch, length))
    optimizer.zero_grad()
    y = model(x).view(batch, 1, length, 50)
    if flash:
        y = y + nn.functional.scaled_dot_product_attention(y, y, y)
    nn.functional.cross_entropy(y.view(-1, 50), x.view(-1)).backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """recorded(batch, length, flash): the path of a capture."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "program.py").write_text(PROGRAM)

    def record(batch, length, flash=0):
        job = folder / f"{batch}x{length}x{flash}"
        if not job.exists():
            command = [ETUDE, "record", "-q", "--recorder", "native", "--warmup", "2", "--steps", "2", "-o", job, "--"]
            subprocess.run([*command, sys.executable, folder / "program.py", *map(str, (batch, length, flash))], check=True)
        return job / "capture.0.etude"

    return record


def changed(tmp_path, traces, part, name="changed"):
    recipe = tmp_path / f"{name}.toml"
    lines = "".join(f'{key} = "{path}"\n' for key, path in traces.items())
    recipe.write_text(f"[traces]\n{lines}[[part]]\ntrace = \"a\"\n{part}")
    done = subprocess.run(
        [ETUDE, "compose", recipe, "-o", tmp_path / f"{name}.json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return tmp_path / f"{name}.json"


def forms(path):
    """Returns for each node its name, and sizes, types and integers of its arguments and results."""
    rows = []
    for node in json.loads(path.read_text())["nodes"]:
        sides = [node["inputs"], node["outputs"]]
        numbers = [v for side in sides for v, t in zip(side["values"], side["types"]) if t.startswith(("Int", "Generic"))]
        tensors = "Tensor" in str([side["types"] for side in sides])
        rows.append((node["name"], [(s["shapes"], s["types"]) for s in sides], None if tensors else numbers))
    return rows


@pytest.mark.parametrize("small, large, wanted", [((2, 4), (4, 4), (6, 4)), ((2, 4), (2, 8), (2, 12))])
def test_another_batch_or_length_is_as_if_recorded_so(tmp_path, recorded, small, large, wanted):
    sizes = [(a, b, c) for a, b, c in zip(small, large, wanted) if a != b][0]
    part = f'resize = {{ with = "b", sizes = [{sizes[0]}, {sizes[1]}], to = {sizes[2]} }}\n'
    resized = changed(tmp_path, {"a": recorded(*small), "b": recorded(*large)}, part)
    plain = changed(tmp_path, {"a": recorded(*wanted)}, "", "plain")
    assert forms(resized) == forms(plain)
    report = replay(resized)
    assert report["skipped"] == [] and report["coerced"]["shapes"] == 0
    # Unknown if the larger one took less time by chance.
    assert report["expected"]["ms"] is None or report["expected"]["ms"] > 0


def test_another_element_type_runs(tmp_path, recorded):
    part = 'dtype = { from = "float32", to = "bfloat16" }\n'
    path = changed(tmp_path, {"a": recorded(2, 4, 1)}, part)
    in_float = {row[0] for row in forms(path) if "Tensor(float)" in str(row)}
    # The data that attention keeps for its backward pass.
    assert len(in_float) == 2 and all("attention" in name for name in in_float), in_float
    report = replay(path)
    assert report["skipped"] == [] and report["expected"]["ms"] is None


def test_recordings_of_other_programs_are_refused(tmp_path, recorded):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f'[traces]\na = "{recorded(2, 4)}"\nb = "{TRACE}"\n[[part]]\ntrace = "a"\n'
        'resize = { with = "b", sizes = [2, 4], to = 6 }\n'
    )
    done = subprocess.run([ETUDE, "compose", recipe, "-o", tmp_path / "x.json"], capture_output=True, text=True)
    assert done.returncode == 3 and "recipe.toml:4:1: " in done.stderr and "differ only in sizes" in done.stderr
