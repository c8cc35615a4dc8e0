"""`etude suite benchmark`: tasks as standalone benchmarks with certificates. Tests never check durations."""

import json
import os
import subprocess
import sys

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
DATA = os.environ["ETUDE_SUITE_DATA"]
QUICK = ["--threads", "1", "--batch", "8", "--iterations", "1", "--starts", "1"]


def benchmark(output, *words, codes=(0, 1), data=DATA, pairs=10):
    line = [ETUDE, "suite", "benchmark", "-o", output, *QUICK, "--pairs", pairs, "--python", sys.executable, "--data", data, *words]
    done = subprocess.run([*map(str, line)], capture_output=True, text=True)
    assert done.returncode in codes, (done.returncode, done.stdout, done.stderr)
    return done


def python(output, *words, **kwargs):
    done = benchmark(output, "--language", "python", "--json", *words, **kwargs)
    return json.loads(done.stdout), done.stderr


def test_a_task_becomes_a_benchmark_once(tmp_path):
    output = tmp_path / "out"
    found, said = python(output, "C16")
    (task,) = found["tasks"]
    assert task["id"] == "learning-to-rank" and not task["kept"] and found["failed"] == []
    assert task["coverage"] == {"ops": 1, "time": 1} and task["pairs"] == 10
    metrics = {row["name"]: row for row in task["metrics"]}
    assert metrics["wall_time"]["original"]["median"] > 0 and metrics["wall_time"]["replay"]["median"] > 0
    assert task["met"] == all(row.get("verdict", "met") == "met" for row in task["metrics"])
    assert "learning-to-rank (1 of 1): recording a step" in said

    job = json.loads((output / "recordings/learning-to-rank/job.json").read_text())
    certificate = json.loads((output / "certificates/learning-to-rank.json").read_text())
    assert certificate["benchmark"]["recording"] == job["job"]
    assert certificate["comparison"]["benchmark"] == "learning-to-rank/benchmark.py"
    assert certificate["comparison"]["replay"]["operators"] == certificate["comparison"]["replay"]["operators_replayed"] > 100
    assert certificate["comparison"]["replay"]["device"] == "cpu"
    assert (output / "certificates/learning-to-rank.html").read_text().startswith("<!doctype html>")
    assert (output / "benchmarks/learning-to-rank/step.cc").exists()
    done = subprocess.run([ETUDE, "compare", "--certificate", task["certificate"]], capture_output=True, text=True)
    assert done.returncode == (0 if task["met"] else 1)
    operators = certificate["comparison"]["replay"]["operators"]
    assert f"operators replayed: {operators} of {operators}; by time: 100.0 %" in done.stdout

    again, said = python(output, "learning-to-rank")
    assert again["tasks"] == [task | {"kept": True}]
    assert f"(1 of 1): kept, with its certificate of {certificate['comparison']['measured']}" in said

    # More pairs are measured with the same recording.
    more, said = python(output, "learning-to-rank", pairs=11)
    assert not more["tasks"][0]["kept"] and more["tasks"][0]["pairs"] == 11
    assert "recording" not in said
    assert json.loads((output / "recordings/learning-to-rank/job.json").read_text()) == job

    done = benchmark(output, "learning-to-rank", "--seed", 2, codes=(2,))
    assert "found a recording of `etude suite run learning-to-rank --scale smoke --seed 1" in done.stderr


def test_the_cpp_program_is_built(tmp_path, monkeypatch):
    """On a device of the tests; test_benchmark.py runs C++ programs on the CPU."""
    monkeypatch.setenv("CMAKE_BUILD_TYPE", "Debug")  # compiles faster
    library = os.path.join(os.environ["ETUDE_BIN"], "../tests/operators/test_device.so")
    device = ("--device", "loopback", "--library", library, "--experimental")
    done = benchmark(tmp_path, "spatial-transformer", *device)
    assert (tmp_path / "benchmarks/spatial-transformer/build/benchmark").exists()
    title, head, row = done.stdout.splitlines()
    assert head.split()[:3] == ["task", "operators", "covered"]
    assert row.split()[:2] == ["spatial-transformer", "271"] and row.count("100.0 %") == 2
    certificate = json.loads((tmp_path / "certificates/spatial-transformer.json").read_text())
    assert certificate["comparison"]["replay"]["operators_replayed"] == 271
    assert certificate["comparison"]["replay"]["device"] == "loopback"


def test_a_failing_task_does_not_stop_the_others(tmp_path):
    (tmp_path / "data").mkdir()
    os.symlink(os.path.join(DATA, "nycflights"), tmp_path / "data/nycflights")
    words = ("spatial-transformer", "learning-to-rank")
    found, said = python(tmp_path / "out", *words, data=tmp_path / "data", codes=(4,))
    assert [task["id"] for task in found["tasks"]] == ["learning-to-rank"]
    assert found["failed"] == [{"id": "spatial-transformer", "exit_code": 4, "error": "recording a step failed (exit code 4)"}]
    assert "mnist-5k" in said and "1 of 2 tasks failed: spatial-transformer" in said


def test_errors_before_any_work(tmp_path):
    assert "did you mean 'learning-to-rank'" in benchmark(tmp_path / "out", "learning-to-rnk", codes=(2,)).stderr
    (tmp_path / "thesis.tex").write_text("x")
    assert "found other files, expected a new folder" in benchmark(tmp_path, "learning-to-rank", codes=(2,)).stderr
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\n")
    bare.chmod(0o755)
    done = benchmark(tmp_path / "out", "learning-to-rank", "--python", bare, codes=(4,))
    assert f"{bare}: found no torch" in done.stderr
    assert not (tmp_path / "out").exists()
