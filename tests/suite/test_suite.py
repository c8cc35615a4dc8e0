"""The suite as users run it: each task trains, continues where it was stopped and on several ranks, and its step is
recorded, replayed and made a benchmark."""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest
from on_terminal import OnTerminal

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
DATA = os.environ["ETUDE_SUITE_DATA"]
CATALOGUE = {task["id"]: task for task in json.loads(subprocess.check_output([ETUDE, "suite", "list", "--json"]))["tasks"]}
TASKS = list(CATALOGUE)


def suite(*words, codes=(0,), **kwargs):
    done = subprocess.run([ETUDE, "suite", *map(str, words)], capture_output=True, text=True, **kwargs)
    assert done.returncode in codes, (done.returncode, done.stdout, done.stderr)
    return done


def run(*words, codes=(0, 1)):
    done = suite("run", *words, "--data", DATA, "--threads", 1, "--json", codes=(*codes, 4))
    if done.returncode == 4 and "`etude suite setup` makes it" in done.stderr:
        pytest.skip(done.stderr.strip())  # not every machine can make every data set
    assert done.returncode in codes, done.stderr
    return json.loads(done.stdout)["tasks"]


@pytest.mark.parametrize("task", TASKS)
def test_a_task_learns_and_its_step_is_replayed(task, tmp_path):
    half = {"spatial-transformer": 40}.get(task, 6)  # its rate begins at 0
    words = (task, "--most-steps", 2 * half, "--evaluate-every", half, "-o", tmp_path / "runs")
    found = run(*words)[0]
    assert found["id"] == task
    (record,) = found["runs"]
    # The losses of a generator and its critic show nothing about what they have learned.
    figure = "quality" if task == "image-generation" else "loss"
    first, second = (point[figure] for point in record["curve"])
    assert second < first
    assert record["complete"] and record["seconds"] > 0 and record["parameters"] > 0
    assert found["baseline"] is not None and found["target"] is not None
    # Kept runs are not run again.
    again = run(*words)[0]
    assert again == found

    suite("run", task, "--data", DATA, "--threads", 1, "--batch", 8, "--warmup", 1, "--iterations", 2, "--record", tmp_path)
    done = subprocess.run([ETUDE, "replay", tmp_path / task, "--json", "--warmup", "0", "--iterations", "1"],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["skipped"] == [] and report["operators"]["total"] > 50
    assert report["same_kernels"] > 0.99
    subprocess.run([ETUDE, "convert", tmp_path / task, "-o", tmp_path / "step"], check=True, capture_output=True)
    done = subprocess.run([ETUDE, "benchmark", "-q", tmp_path / task, "-o", tmp_path / "bench", "--warmup", "0", "--iterations", "1"],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_run_that_was_stopped_goes_on(tmp_path):
    words = [ETUDE, "suite", "run", "spatial-transformer", "--data", DATA, "--threads", "1", "--target", "1.1"]
    words += ["--evaluate-every", "20", "-o", tmp_path, "--json", "--most-steps"]
    running = OnTerminal([*words, "1000000"])
    running.wait_for(" of 1000000")  # after some steps
    running.process.send_signal(signal.SIGINT)
    code, said = running.end(), running.text
    assert code == 130, said
    assert "repeat the command to continue" in said
    stopped = int(re.search(r"stopped after (\d+) steps?", said)[1])
    assert [path.suffix for path in tmp_path.iterdir()] == [".safetensors"]
    other = subprocess.run([*words, "1000000", "--rate", "0.5"], capture_output=True, text=True)
    assert other.returncode == 2 and "an earlier run without --rate 0.5" in other.stderr
    most = stopped + 40
    done = subprocess.run([*words, str(most)], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    record = json.loads(done.stdout)["tasks"][0]["runs"][0]
    steps = [point["step"] for point in record["curve"]]
    assert steps == sorted({*range(20, most + 1, 20), most})
    assert not record["reached"] and record["complete"]
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


@pytest.mark.parametrize("task", TASKS)
def test_ranks_train_one_model(task):
    # Each run compares the ranks' weights at its end. trainer_test checks that they equal those of one rank.
    (found,) = run(task, "--mode", "steps", "--warmup", 0, "--iterations", 2, "--batch", 8, "--ranks", 2)
    (record,) = found["runs"]
    assert (record["ranks"], record["batch"], record["steps"]) == (2, 8, 2)


def test_ranks_learn_as_one_does(tmp_path):
    words = ["image-classification", "--most-steps", 4, "--evaluate-every", 2, "--batch", 32]
    alone = run(*words)[0]["runs"][0]
    pair = run(*words, "--ranks", 2)[0]["runs"][0]
    # Batch norms process halves of the batch, so results are near, not equal.
    assert pair["curve"][0]["loss"] == pytest.approx(alone["curve"][0]["loss"], rel=0.2)
    suite("run", "spatial-transformer", "--data", DATA, "--threads", 1, "--ranks", 2, "--warmup", 0, "--iterations", 1,
          "--record", tmp_path)  # fmt: skip
    job = json.loads((tmp_path / "spatial-transformer/job.json").read_text())
    assert job["world_size"] == 2 and set(job["ranks"]) == {"0", "1"}
    done = subprocess.run([ETUDE, "validate", tmp_path / "spatial-transformer"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_theoretical_work_of_masks():
    def figures(*words):
        words = ("--most-steps", 2, "--evaluate-every", 2, "--density", 0.25, *words)
        return run("image-classification", *words)[0]["runs"][0]["figures"]

    # All weights of this network are in convolutions and a linear layer, and have one density.
    found = figures("--sparse", "static", "--sparse-shares", "uniform")
    assert found["theoretical FLOP, forward"] == pytest.approx(0.25, rel=1e-3)
    assert found["theoretical FLOP, training"] == pytest.approx(found["theoretical FLOP, forward"])
    # Large pictures are in front, where ERK leaves more weights.
    assert figures("--sparse", "set", "--sparse-shares", "erk")["theoretical FLOP, forward"] > 0.3


def test_sparse_kernels_compute_what_masks_do():
    words = ("advertising", "--most-steps", 6, "--evaluate-every", 6, "--sparse", "rigl", "--density", 0.25)
    words += ("--sparse-update-every", 2)
    masks = run(*words)[0]["runs"][0]
    csr = run(*words, "--sparse-kernels", "csr")[0]["runs"][0]
    assert csr["settings"]["sparse-kernels"] == "csr" and csr["settings"]["sparse-update-every"] == "2"
    assert csr["quality"] == pytest.approx(masks["quality"], abs=1e-3)
    assert 0 < csr["figures"].pop("share of weights in CSR layers") < 1
    for name in ("density", "theoretical FLOP, forward", "theoretical FLOP, training"):
        assert csr["figures"][name] == pytest.approx(masks["figures"][name])
    # All its layers are convolutions.
    words = ("image-generation", "--sparse", "static", "--density", 0.25, "--sparse-kernels", "csr")
    refused = suite("run", *words, "--data", DATA, codes=(2,))
    assert "no linear layer with masked weights" in refused.stderr


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_says_what_became_of_gradients(precision):
    record = run("spatial-transformer", "--precision", precision, "--most-steps", 4, "--evaluate-every", 2)[0]["runs"][0]
    assert record["precision"] == precision
    assert 0 <= record["underflow_share"] < 1
    assert (record["loss_scale"] is not None) == (precision == "fp16")
    assert record["curve"][-1]["loss"] > 0


def test_steps_are_timed():
    record = run("spatial-transformer", "--mode", "steps", "--warmup", 1, "--iterations", 3)[0]["runs"][0]
    assert len(record["step_seconds"]) == 3 and record["steps"] == 4
    assert record["quality"] is None


def test_what_is_kept_must_be_what_is_asked_for(tmp_path):
    words = ["spatial-transformer", "--most-steps", 2, "--evaluate-every", 2, "-o", tmp_path]
    record = run(*words)[0]["runs"][0]
    assert record["settings"] == {"evaluate-every": "2", "most-steps": "2", "threads": "1"}
    words += ["--data", DATA, "--threads", 1]
    wrong = suite("run", *words, "--precision", "bf16", codes=(2,))
    assert "an earlier run with precision fp32, expected bf16" in wrong.stderr
    wrong = suite("run", *words, "--frozen", codes=(2,))
    assert "an earlier run without --frozen; use another --output" in wrong.stderr
    wrong = suite("run", *words, "--optimizer", "sdg", codes=(2,))
    assert "found 'sdg', expected one of sgd, adam" in wrong.stderr
    # A copy under another seed's name.
    record_text = (tmp_path / "spatial-transformer.smoke.quality.1.json").read_text()
    (tmp_path / "spatial-transformer.smoke.quality.2.json").write_text(record_text)
    wrong = suite("run", *words, "--seed", 2, codes=(3,))
    assert "quality.2.json: found a run with seed 1, expected 2" in wrong.stderr
    # A record from before settings were kept.
    path = tmp_path / "spatial-transformer.smoke.quality.1.json"
    old = json.loads(path.read_text())
    del old["settings"], old["data_set"]
    path.write_text(json.dumps(old))
    wrong = suite("run", *words, codes=(2,))
    assert "an earlier run without --evaluate-every 2, according to its record" in wrong.stderr
    kept = json.loads(suite("run", *words[:1], *words[5:], "--json", codes=(1,)).stdout)
    assert kept["tasks"][0]["runs"][0]["steps"] == 2


def test_data_that_are_not_there(tmp_path):
    missing = suite("run", "spatial-transformer", "--data", tmp_path, codes=(4,))
    assert "etude suite setup" in missing.stderr
    (tmp_path / "mnist-5k").mkdir()
    (tmp_path / "mnist-5k/images-idx3-ubyte").write_bytes(b"\0\0\x08\x03\0\0\0\1\0\0\0\1\0\0\0\2\7")
    (tmp_path / "mnist-5k/labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\1\3")
    cut = suite("run", "spatial-transformer", "--data", tmp_path, codes=(3,))
    assert "images-idx3-ubyte: found 1 bytes of elements, expected 2" in cut.stderr


def test_report_and_comparison(tmp_path):
    for system, seed in (("a", 1), ("b", 3)):
        run("spatial-transformer", "--target", 0.05, "--most-steps", 4, "--evaluate-every", 2, "--seed", seed, "--seeds", 2,
            "-o", tmp_path / system)  # fmt: skip
    text = suite("report", tmp_path / "a", "-o", tmp_path / "page.html").stdout
    assert "spatial-transformer" in text and "reached" in text
    page = (tmp_path / "page.html").read_text()
    assert "course_spatial-transformer" in page
    ranking = json.loads(suite("compare", tmp_path / "a", tmp_path / "b", "--json").stdout)
    assert sorted(row["rank"] for row in ranking["systems"]) == [1, 2]
    assert ranking["systems"][0]["speed"]["value"] == pytest.approx(1)
    assert any("fewer than" in note for note in ranking["notes"])
    # A page never replaces a run, whatever its name.
    kept = tmp_path / "a/spatial-transformer.smoke.quality.1.json"
    (tmp_path / "link.html").symlink_to(kept)
    before = kept.read_bytes()
    for page, told in ((kept, "expected a name that ends in .html"), (tmp_path / "link.html", "is the input")):
        assert told in suite("report", tmp_path / "b", tmp_path / "a", "-o", page, codes=(2,)).stderr
    assert kept.read_bytes() == before


def test_training_that_diverges_reaches_nothing(tmp_path):
    words = ["spatial-transformer", "--optimizer", "sgd", "--rate", "1e30", "--data", DATA, "--threads", 1]
    diverged = suite("run", *words, "--most-steps", 6, "--evaluate-every", 2, "-o", tmp_path, codes=(1,))
    assert diverged.stderr.count("the loss is not a number") == 1
    # A metric for which lower is better, as in its record.
    path = tmp_path / "spatial-transformer.smoke.quality.1.json"
    record = json.loads(path.read_text()) | {"higher_is_better": False, "quality": None}
    for point in record["curve"]:
        point["quality"] = None
    path.write_text(json.dumps(record))
    (task,) = json.loads(suite("report", tmp_path, "--format", "json").stdout)["tasks"]
    assert task["convergence"]["epochs"] is None and task["runs"][0]["curve"][0]["quality"] is None
    assert "eval_accuracy" not in suite("report", tmp_path, "--format", "mllog").stdout


def test_other_work_is_not_ranked(tmp_path):
    for batch in (8, 16):
        run("spatial-transformer", "--mode", "steps", "--warmup", 0, "--iterations", 1, "--batch", batch, "-o", tmp_path / f"b{batch}")
    wrong = suite("compare", tmp_path / "b8", tmp_path / "b16", codes=(3,)).stderr
    assert f"spatial-transformer: {tmp_path / 'b8'} has runs with batch 8, {tmp_path / 'b16'} with 16" in wrong


def keep_runs(folder, reference, steps, **changes):
    """Writes five runs with the settings of a calibrated task, which reach its target with the last of `steps`."""
    folder.mkdir()
    record = {"format": "etude-suite-run", "version": 1, "mode": "quality", "device": "cpu", "ranks": 1, "threads": 1,
              "complete": True, "reached": True, "quality": reference["target"], "steps": steps, "seconds": 1.0,
              "higher_is_better": CATALOGUE[reference["id"]]["higher_is_better"]}  # fmt: skip
    settings = ("id", "scale", "metric", "target", "baseline", "precision", "batch", "optimizer", "samples", "parameters")
    record |= {name: reference[name] for name in settings} | changes
    every = reference["evaluate_every"]
    record["curve"] = [{"step": step, "quality": reference["target" if step == steps else "baseline"], "loss": 1.0}
                       for step in range(every, steps + 1, every)]  # fmt: skip
    for seed in range(5):
        (folder / f"{seed}.json").write_text(json.dumps(record | {"seed": seed}))
    return folder


def test_convergence_is_put_beside_the_reference(tmp_path):
    calibration = pathlib.Path(__file__).parents[2] / "docs/suite/calibration.json"
    reference = json.loads(calibration.read_text())["tasks"][0]
    runs = sorted(reference["fitted"] + reference["checked"], key=lambda run: run["steps_to_target"])
    middle = runs[len(runs) // 2]
    same = keep_runs(tmp_path / "same", reference, middle["steps_to_target"])
    fast = keep_runs(tmp_path / "fast", reference, reference["evaluate_every"])
    other = keep_runs(tmp_path / "other", reference, middle["steps_to_target"], batch=reference["batch"] * 2)

    tasks = json.loads(suite("report", same, fast, other, "--format", "json").stdout)["tasks"]
    found, found_fast, found_other = (task["convergence"] for task in tasks)
    assert found["verdict"] == "comparable" and found["why"] is None
    assert found["epochs"] == pytest.approx(middle["epochs_to_target"])
    assert found["reference_epochs"] == pytest.approx(sum(run["epochs_to_target"] for run in runs[1:-1]) / (len(runs) - 2))
    assert found_fast["verdict"] == "too_fast" and found_fast["epochs"] < found_fast["least_epochs"]
    why = f"no reference for batch {2 * reference['batch']}"
    assert found_other == {"verdict": "no_reference", "why": why, "epochs": found_other["epochs"],
                           "reference_epochs": None, "least_epochs": None}  # fmt: skip
    assert "converged too fast: not comparable" in suite("report", fast, "-o", tmp_path / "page.html").stdout
    assert "converged too fast" in (tmp_path / "page.html").read_text()

    ranking = json.loads(suite("compare", same, fast, "--json").stdout)
    assert [row["verdict"] for row in ranking["convergence"]] == ["comparable", "too_fast"]
    assert any(note.startswith(f"{fast}: {reference['id']}: ") for note in ranking["notes"])
    # `run` also judges existing runs.
    kept = tmp_path / "kept"
    kept.mkdir()
    for seed in range(5):
        (fast / f"{seed}.json").rename(kept / f"{reference['id']}.smoke.quality.{seed}.json")
    last = suite("run", reference["id"], "--seed", 0, "--seeds", 5, "-o", kept).stdout.splitlines()[-1]
    assert last.startswith(f"{reference['id']}: ") and last.endswith("converged too fast: not comparable")


def test_lines_that_mlperf_reads(tmp_path):
    mlp_parser = pytest.importorskip("mlperf_logging.compliance_checker.mlp_parser")

    run("spatial-transformer", "--target", 0.05, "--most-steps", 4, "--evaluate-every", 2, "-o", tmp_path / "runs")
    log = suite("report", tmp_path / "runs", "--format", "mllog").stdout
    (tmp_path / "result_0.txt").write_text(log)
    lines, errors = mlp_parser.parse_file(str(tmp_path / "result_0.txt"), ruleset="6.0.0")
    assert not errors
    keys = [line.key for line in lines]
    assert keys.index("init_start") < keys.index("init_stop") < keys.index("run_start") < keys.index("run_stop")
    assert "seed" in keys
    (record,) = json.loads(suite("report", tmp_path / "runs", "--format", "json").stdout)["tasks"][0]["runs"]
    told = [line.value["metadata"]["epoch_num"] for line in lines if line.key == "eval_accuracy"]
    assert told == [point["step"] * record["batch"] / record["samples"] for point in record["curve"]]


def test_options_that_do_not_go_together(tmp_path):
    for option, value in (("-o", tmp_path / "runs"), ("--mode", "quality")):
        wrong = suite("run", "spatial-transformer", "--data", DATA, "--record", tmp_path, option, value, codes=(2,))
        assert "--record cannot be combined with" in wrong.stderr
    (tmp_path / "file").touch()
    wrong = suite("run", "spatial-transformer", "--data", DATA, "-o", tmp_path / "file/x", codes=(5,))
    assert f"{tmp_path}/file/x: cannot create it: " in wrong.stderr
    wrong = suite("setup", "foo", "--data", tmp_path / "data", codes=(2,))
    assert wrong.stderr.startswith("etude: unknown data set 'foo', expected mnist-5k") and "usage" not in wrong.stderr


def test_names_are_suggested():
    wrong = suite("run", "spatial-transfomer", codes=(2,))
    assert "did you mean 'spatial-transformer'" in wrong.stderr
    assert "expected names of tasks, or --all" in suite("run", codes=(2,)).stderr
