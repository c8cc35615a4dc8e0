"""`etude suite simulate`: recorded steps of tasks as data-parallel ranks. Tests never check measured durations."""

import json
import os
import shutil
import subprocess

import pytest

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
DATA = os.environ["ETUDE_SUITE_DATA"]
QUICK = ["--threads", "1", "--batch", "8", "--iterations", "5"]


def etude(*words, codes=(0,)):
    done = subprocess.run([ETUDE, *map(str, words)], capture_output=True, text=True)
    assert done.returncode in codes, (words, done.returncode, done.stdout, done.stderr)
    return done


def simulate(output, *words, data=DATA, codes=(0,)):
    done = etude("suite", "simulate", "-o", output, *QUICK, "--data", data, "--json", *words, codes=codes)
    return json.loads(done.stdout), done.stderr


def steps(found):
    """Returns the steps by task and number of ranks."""
    return {(task["id"], step["ranks"]): step for task in found["tasks"] for step in task["steps"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the recordings of two tasks, one of which has six backward passes a step."""
    output = tmp_path_factory.mktemp("simulated")
    found, said = simulate(output, "learning-to-rank", "image-generation", "--ranks", "8,1024")
    assert "image-generation (2 of 2): recording a step" in said and found["failed"] == []
    assert [(task["id"], task["kept"]) for task in found["tasks"]] == [("learning-to-rank", False), ("image-generation", False)]
    return output, found


def test_laws(folder):
    output, found = folder
    assert found["format"] == "etude-suite-simulations" and found["version"] == 1 and found["scale"] == "smoke"
    assert found["network"] == "Switch(N):12.5GB/s,5us"
    for task in found["tasks"]:
        few, many = task["steps"]
        assert (few["ranks"], many["ranks"]) == (8, 1024)
        assert many["all_reduces"] == few["all_reduces"] == (6 if task["id"] == "image-generation" else 1)
        assert many["gradient_bytes"] == few["gradient_bytes"] > 0
        assert many["step_ns"] > few["step_ns"] > task["one_rank_ns"] > 0
        for step in task["steps"]:
            assert 0 <= step["exposed_ns"] <= step["communication_ns"]
            assert step["step_ns"] >= task["one_rank_ns"] + step["exposed_ns"] - 1000
            parts = task["one_rank_ns"] + step["copies_ns"] + step["exposed_ns"]
            assert step["copies_ns"] > 0 and step["step_ns"] == pytest.approx(parts, abs=10_000)
            assert step["efficiency"] == pytest.approx(task["one_rank_ns"] / step["step_ns"]) and step["efficiency"] <= 1

    slow, said = simulate(output, "learning-to-rank", "C2", "--ranks", "8,1024", "--network", "Switch(N):0.1GB/s,50us")
    assert "recording a step" not in said and all(task["kept"] for task in slow["tasks"])
    for key, step in steps(slow).items():
        assert step["step_ns"] > steps(found)[key]["step_ns"]

    # Every gradient is a bucket of its own.
    small, _ = simulate(output, "image-generation", "--ranks", 8, "--bucket", "1B")
    assert steps(small)["image-generation", 8]["all_reduces"] == 5 * 5 + 7
    assert steps(small)["image-generation", 8]["gradient_bytes"] == steps(found)["image-generation", 8]["gradient_bytes"]


def test_as_whatif_and_simulate_by_hand(folder, tmp_path):
    output, found = folder
    for task in found["tasks"]:
        recording = output / "recordings" / task["id"]
        assert task["recording"] == str(recording)
        alone = json.loads(etude("simulate", recording, "--network", "Ring(1):1GB/s,1us", "--json").stdout)
        assert task["one_rank_ns"] == alone["step_ns"]
        assert task["program_step_ns"] == alone["program_step_ns"]
        for step in task["steps"]:
            job = tmp_path / f"{task['id']}-{step['ranks']}"
            etude("whatif", recording, "--dp", step["ranks"], "-o", job)
            hand = json.loads(etude("simulate", job, "--network", f"Switch({step['ranks']}):12.5GB/s,5us", "--json").stdout)
            assert hand["rank_count"] == step["ranks"] and len(hand["ranks"]) == 1
            assert step["step_ns"] == hand["step_ns"]
            mean = hand["times"][0]
            assert (step["communication_ns"], step["exposed_ns"]) == (mean["communication_ns"], mean["exposed_communication_ns"])
            assert step["all_reduces"] == sum(row["count"] for row in hand["collectives"])
            assert step["gradient_bytes"] == sum(row["count"] * row["bytes"] for row in hand["collectives"])


def test_gradients_are_those_of_two_ranks_that_train(folder, tmp_path):
    _, found = folder
    for task in found["tasks"]:
        etude("suite", "run", task["id"], *QUICK, "--data", DATA, "--ranks", 2, "--warmup", 1, "--record", tmp_path)
        two = json.loads(etude("simulate", tmp_path / task["id"], "--network", "Ring(2):1GB/s,1us", "--json").stdout)
        assert sum(row["count"] * row["bytes"] for row in two["collectives"]) == task["steps"][0]["gradient_bytes"]


def test_the_size_n_of_a_network(folder):
    output, _ = folder
    network = "Ring(8):100GB/s,1us Switch(N):12.5GB/s,5us"
    found, _ = simulate(output, "learning-to-rank", "--ranks", "16,64", "--network", network)
    fixed, _ = simulate(output, "learning-to-rank", "--ranks", 64, "--network", network.replace("N", "8"))
    assert found["tasks"][0]["steps"][1] == fixed["tasks"][0]["steps"][0]
    shared, _ = simulate(output, "learning-to-rank", "--ranks", "2-4", "--model", "etude-1")
    assert [step["ranks"] for step in shared["tasks"][0]["steps"]] == [2, 3, 4]
    table = etude("suite", "simulate", "learning-to-rank", "-q", "-o", output, *QUICK, "--ranks", "8,1024").stdout
    assert "machine of 1,024 ranks, etude-1, default network:" in table and "Switch(1024)" in table
    row = table.splitlines()[2].split()
    assert row[0] == "learning-to-rank" and row[-1] == "%"


def test_a_failing_task_does_not_stop_the_others(folder, tmp_path):
    (tmp_path / "data").mkdir()
    os.symlink(os.path.join(DATA, "nycflights"), tmp_path / "data/nycflights")
    output = tmp_path / "out"
    words = ("spatial-transformer", "learning-to-rank", "--ranks", 8)
    found, said = simulate(output, *words, data=tmp_path / "data", codes=(4,))
    assert [task["id"] for task in found["tasks"]] == ["learning-to-rank"]
    assert found["failed"] == [{"id": "spatial-transformer", "exit_code": 4, "error": "recording a step failed (exit code 4)"}]
    assert "1 of 2 tasks failed: spatial-transformer" in said


def test_a_damaged_recording_does_not_stop_the_others(folder, tmp_path):
    output = shutil.copytree(folder[0], tmp_path / "out")
    (output / "recordings/image-generation/job.json").write_text("")
    # A task that is named twice has one row.
    words = ("image-generation", "learning-to-rank", "learning-to-rank", "--ranks", 8)
    found, said = simulate(output, *words, codes=(3,))
    assert [task["id"] for task in found["tasks"]] == ["learning-to-rank"]
    (failed,) = found["failed"]
    assert failed["id"] == "image-generation" and failed["exit_code"] == 3 and "image-generation/job.json" in failed["error"]
    assert "1 of 2 tasks failed: image-generation" in said


def test_another_device(tmp_path):
    device = ("--device", "loopback", "--library", os.path.join(os.environ["ETUDE_BIN"], "../tests/operators/test_device.so"))
    here, _ = simulate(tmp_path / "here", "spatial-transformer", "--ranks", 8)
    there, _ = simulate(tmp_path / "there", "spatial-transformer", "--ranks", 8, *device)
    (step,), (other,) = here["tasks"][0]["steps"], there["tasks"][0]["steps"]
    assert step["gradient_bytes"] == other["gradient_bytes"] > 0
    assert other["step_ns"] > there["tasks"][0]["one_rank_ns"] > 0
    done = etude("suite", "simulate", "spatial-transformer", "-o", tmp_path / "here", *QUICK, *device, "--data", DATA, codes=(2,))
    assert "expected `etude suite run spatial-transformer --scale smoke --seed 1 --device loopback" in done.stderr


def test_errors_before_any_work(tmp_path):
    output = tmp_path / "out"

    def refused(*words):
        return etude("suite", "simulate", "learning-to-rank", "-o", output, *words, codes=(2,)).stderr

    assert "--ranks: found '0,8', expected numbers from 1" in refused("--ranks", "0,8")
    assert "found 8 NPUs, expected 16" in refused("--ranks", "16", "--network", "Ring(8):1GB/s,1us")
    network = "Ring(8):1GB/s,1us Switch(N):1GB/s,1us"
    assert "found 8 NPUs in the other dimensions" in refused("--ranks", "12", "--network", network)
    assert "--bucket: found '12', expected a size with a unit" in refused("--bucket", "12")
    assert "straggler: found rank 9" in refused("--ranks", "8", "--straggler", "9:2")
    assert not output.exists()
