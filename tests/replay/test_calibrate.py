"""`etude calibrate` measures collectives of this machine, keeps what its file has, and refuses other files. The sizes are
small, and times are not compared."""

import json
import os
import signal
import subprocess
import time
import tomllib

import pytest

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter"]


def calibrate(path, *words, code=0):
    words = [ETUDE, "calibrate", "-o", path, "--repeats", "3", "--rounds", "1", "--sizes", "8,32,1KiB", *words]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def states(done):
    """The state of each communication and computation, by type, number of ranks, and type of elements if not float32."""
    report = json.loads(done.stdout)
    rows = report.get("communication", []) + report.get("computation", [])
    return {
        (row["type"], row["ranks"]) + ((row["dtype"],) if row.get("dtype", "float32") != "float32" else ()): row["state"]
        for row in rows
    }


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The text of a file with all types at two ranks. Noise of the machine must not matter: hence --force."""
    path = tmp_path_factory.mktemp("machine") / "machine.toml"
    calibrate(path, "--force")
    return path.read_text()


def test_file_has_all_types(measured):
    file = tomllib.loads(measured)
    assert (file["format"], file["version"]) == ("etude-machine", 1)
    assert file["machine"]["backend"] == "gloo" and file["machine"]["device"] == "cpu"
    series = {row["type"]: row for row in file["communication"]}
    assert sorted(series) == sorted([*COLLECTIVES, "barrier", "message"])
    for name, row in series.items():
        assert row["ranks"] == 2
        assert row["bytes"] == ([0] if name == "barrier" else [8, 32, 1024]), name
        assert len(row["time_ns"]) == len(row["spread"]) == len(row["cores"]) == len(row["bytes"])
        assert all(time > 0 for time in row["time_ns"]) and all(0 <= cores < 64 for cores in row["cores"])
    checks = {row["type"]: row for row in file["check"]}
    assert sorted(checks) == sorted([*COLLECTIVES, "message"])
    for name, row in checks.items():
        in_parts = name in ("reduce_scatter", "all_to_all", "scatter")
        assert row["bytes"] == [24 if in_parts else 20], name
        ends = series[name]["time_ns"][:2]
        assert all(min(ends) <= time <= max(ends) for time in row["predicted_ns"]), name


def test_computations_are_a_device(tmp_path, measured):
    file = tomllib.loads(measured)
    found = {(row["type"], row["dtype"]): row for row in file["computation"]}
    assert list(found) == [("copy", "float32"), ("addition", "float32"), ("product", "float32"), ("product", "bfloat16")]
    ranks = max(1, min(2, int(file["machine"]["cores"])))
    for (name, dtype), row in found.items():
        assert row["ranks"] == ranks
        if name != "product":
            assert row["bytes"] == [8, 32, 1024]
        elif dtype == "float32":
            assert row["bytes"] == [4 * rows * rows for rows in (2, 3, 4, 6, 8, 12, 16)]
        assert len(row["time_ns"]) == len(row["spread"]) == len(row["bytes"]) and all(time > 0 for time in row["time_ns"])
    path = tmp_path / "machine.toml"
    path.write_text(measured)
    words = "generate llm llama-2-7b --layers 1 --dp 2 --sequence 16 --json -o".split()
    done = subprocess.run([ETUDE, *words, tmp_path / "step", "--device", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with_copies = measured.index('[[computation]]\ntype = "copy"')
    path.write_text(measured[:with_copies])
    done = subprocess.run([ETUDE, *words, tmp_path / "step", "--device", path], capture_output=True, text=True)
    assert done.returncode == 3 and "machine.toml: missing the [[computation]] 'copy'" in done.stderr


def test_network_is_fitted(tmp_path, measured):
    network = tomllib.loads(measured)["network"]
    assert network["latency_ns"] > 0 and network["bytes_per_second"] > 0
    path = tmp_path / "machine.toml"
    path.write_text(measured)
    report = json.loads(calibrate(path, "--json", "--force").stdout)
    (row,) = report["network"]
    assert {key: row[key] for key in network} == network
    assert {(row["type"], row["ranks"]) for row in report["network_fit"]} == {(name, 2) for name in [*COLLECTIVES, "barrier", "message"]}
    # It simulates more ranks than were measured.
    words = "generate microbench all_reduce --ranks 16 --size 4MiB -o".split()
    assert subprocess.run([ETUDE, *words, tmp_path / "job"], capture_output=True).returncode == 0
    job = [f"{tmp_path}/job.{rank}.et" for rank in range(16)]
    done = subprocess.run([ETUDE, "simulate", *job, "--machine", path, "--model", "etude-1", "--json"], capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)["model"] == "etude-1", done.stderr
    done = subprocess.run([ETUDE, "simulate", *job, "--machine", path], capture_output=True, text=True)
    assert done.returncode == 3 and "16 ranks" in done.stderr
    path.write_text(measured.replace("[network]", "[net]"))
    done = subprocess.run([ETUDE, "simulate", *job, "--machine", path, "--model", "etude-1"], capture_output=True, text=True)
    assert done.returncode == 3 and "unknown key 'net'" in done.stderr


def test_keeps_what_the_file_has(tmp_path, measured):
    path = tmp_path / "machine.toml"
    path.write_text(measured)
    assert set(states(calibrate(path, "--json", "--force")).values()) == {"kept"}
    assert path.read_text() == measured
    # More ranks: the file is extended. A message has two ranks.
    found = states(calibrate(path, "--json", "--force", "--types", "broadcast,message", "--ranks", "2,3"))
    assert found[("broadcast", 2)] == found[("message", 2)] == "kept"
    assert found[("broadcast", 3)] in ("measured", "noisy") and len(found) == 3
    before, after = tomllib.loads(measured), tomllib.loads(path.read_text())
    assert after["communication"][:-1] == before["communication"]
    assert (after["communication"][-1]["type"], after["communication"][-1]["ranks"]) == ("broadcast", 3)
    # Other sizes: the communication is replaced.
    found = states(calibrate(path, "--json", "--force", "--rounds", "2", "--types", "barrier,message", "--sizes", "64"))
    assert found[("barrier", 2)] == "kept" and found[("message", 2)] in ("measured", "noisy")
    (message,) = [row for row in tomllib.loads(path.read_text())["communication"] if row["type"] == "message"]
    assert message["bytes"] == [64]


def test_noisy_times_are_measured_again_without_force(tmp_path, measured):
    path = tmp_path / "machine.toml"
    quiet = measured.replace("noisy = true\n", "")  # the machine may have been noisy
    path.write_text(quiet.replace('type = "barrier"\nranks = 2\n', 'type = "barrier"\nranks = 2\nnoisy = true\n'))
    assert states(calibrate(path, "--json", "--force", "--types", "barrier")) == {("barrier", 2): "kept"}
    # On a busy machine it is refused again.
    for _ in range(5):
        done = calibrate(path, "--json", "--types", "barrier", "--repeats", "200", code=None)
        if done.returncode == 0:
            break
        assert done.returncode == 1 and states(done) == {("barrier", 2): "refused"}
        assert "too noisy to be written: barrier of 2 ranks: the median spread of sizes below 64 KiB is" in done.stderr
    else:
        pytest.skip("the machine is too noisy")
    assert states(done) == {("barrier", 2): "measured"}
    (barrier,) = [row for row in tomllib.loads(path.read_text())["communication"] if row["type"] == "barrier"]
    assert "noisy" not in barrier


def test_output_is_the_file_alone(tmp_path):
    done = calibrate("-", "--force", "--types", "barrier,message")
    file = tomllib.loads(done.stdout)
    assert [row["type"] for row in file["communication"]] == ["message", "barrier"]
    done = calibrate("-", "--json", code=2)
    assert "-o - and --json both write to standard output" in done.stderr and done.stdout == ""


def processes_with(marker):
    """Numbers of the processes that have a variable in their environment."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if marker.encode() in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_keeps_what_was_measured(tmp_path, how):
    path = tmp_path / "machine.toml"
    marker = f"ETUDE_TEST_MARKER={os.getpid()}_{how}"
    words = [ETUDE, "calibrate", "-o", path, "--force", "--types", "barrier,all_reduce", "--sizes", "8,32", "--repeats", "5"]
    process = subprocess.Popen(
        [*map(str, words), "--rounds", "40"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, marker.split("=")[0]: marker.split("=")[1]},
    )  # fmt: skip
    while not (path.exists() and "barrier" in path.read_text()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(how)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, ""), stderr
    assert f"interrupted; {path} has 1 of 2 measurements; repeat the command to continue" in stderr
    assert processes_with(marker) == []
    assert list(tmp_path.iterdir()) == [path]
    found = states(calibrate(path, "--json", "--force", "--types", "barrier,all_reduce", "--sizes", "8,32"))
    assert found[("barrier", 2)] == "kept" and found[("all_reduce", 2)] in ("measured", "noisy")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('torch = "', 'torch = "0.', "the file describes another machine: torch: found '0."),
        ("time_ns", "times", "unknown key 'times' of a communication; did you mean 'time_ns'?"),
        ("[machine]", "[machine", "machine.toml:4:9: "),
    ],
)
def test_refuses_other_files(tmp_path, measured, old, new, message):
    path = tmp_path / "machine.toml"
    text = measured.replace(old, new, 1)
    path.write_text(text)
    done = calibrate(path, code=3)
    assert message in done.stderr and done.stdout == ""
    assert path.read_text() == text


@pytest.mark.parametrize(
    "words, message",
    [
        (("--types", "allreduce"), "--types: unknown 'allreduce'; did you mean 'all_reduce'?"),
        (("--ranks", "1"), "--ranks: found '1', expected 2 to 1024"),
        (("--sizes", "1-3"), "--sizes: found 1-3, which are all rounded up to 4 bytes, expected a larger range"),
        (("--sizes", "9-8"), "--sizes: found 9-8, expected the smaller size first"),
        (("-o", "machine.json"), "machine.json"),
        (("--in", "step"), "--in, --threads, --at-once and --library require --operators"),
        (("--from", "job", "--ranks", "2"), "--from measures nothing"),
    ],
)
def test_wrong_words(tmp_path, words, message):
    done = calibrate(tmp_path / "machine.toml", *words, code=2)
    assert message in done.stderr and list(tmp_path.iterdir()) == []


def test_folder_that_does_not_exist(tmp_path):
    calibrate(tmp_path / "none/machine.toml", "--types", "barrier", code=5)


NCCL_TESTS = """# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 1048576 maxBytes 4194304 step: 2(factor)
#  Rank  0 Group  0 Pid 1 on node device  0 [0x18] NVIDIA H100
#  Rank  1 Group  0 Pid 1 on node device  1 [0x2a] NVIDIA H100
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    50.00   20.97   20.97      0    49.00   21.40   21.40      0
     4194304       1048576     float     sum      -1    80.00   52.43   52.43      0    79.00   53.09   53.09      0
"""


def etude(*words, code=0):
    done = subprocess.run([ETUDE, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def test_times_of_nccl_tests(tmp_path):
    log, machine, job = tmp_path / "log.txt", tmp_path / "machine.toml", tmp_path / "job"
    log.write_text(NCCL_TESTS)
    told = etude("calibrate", "--from", log, "-o", machine).stderr
    assert "fitted to 2 times only" in told
    (series,) = tomllib.loads(machine.read_text())["communication"]
    assert (series["type"], series["ranks"], series["bytes"], series["time_ns"]) == ("all_reduce", 2, [1 << 20, 1 << 22], [50_000, 80_000])
    # Between the sizes: 50 + (80 - 50) / 3 µs.
    etude("generate", "-q", "microbench", "all_reduce", "--ranks", 2, "--size", "2MiB", "-o", job)
    assert json.loads(etude("simulate", job, "--machine", machine, "--json").stdout)["step_ns"] == 60_000
    both = etude("calibrate", "--from", log, "--from", log, "-o", tmp_path / "twice.toml", code=3).stderr
    assert "found all_reduce of 2 ranks, which another file has, too" in both
    assert not (tmp_path / "twice.toml").exists()
    log.write_text(NCCL_TESTS.replace("80.00", "later"))
    assert "log.txt:8: found the time 'later' of 4194304 bytes" in etude("calibrate", "--from", log, "-o", machine, code=3).stderr
