"""`etude whatif` against real jobs: an edited job communicates as the recorded one does."""

import json
import os
import pathlib
import subprocess
import sys
import tomllib

import pytest

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
START_RANKS = pathlib.Path(__file__).parents[1] / "start_ranks.py"
PROGRAM = pathlib.Path(__file__).parent / "ddp_program.py"
TRANSFORMER = pathlib.Path(__file__).parent / "transformer_program.py"
TENSOR = pathlib.Path(__file__).parent / "tensor_program.py"
ROTARY = pathlib.Path(__file__).parent / "rotary_program.py"
PIPELINE = pathlib.Path(__file__).parent / "pipeline_program.py"
NETWORK = "Ring({}):1GB/s,1us"
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm")


def etude(*words, code=0):
    done = subprocess.run([ETUDE, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def record(folder, program, *arguments, ranks=1):
    start = (sys.executable, "-E", START_RANKS, ranks)
    etude("record", "-o", folder, "--warmup", 2, "--steps", 3, "--", *start, program, *arguments)
    return folder


def edit(job, to, *edits):
    return json.loads(etude("whatif", job, "-o", to, "--json", *edits).stdout)


def simulate(job, ranks=2):
    return json.loads(etude("simulate", job, "--network", NETWORK.format(ranks), "--json").stdout)


def sizes(simulated):
    return sorted(row["bytes"] for row in simulated["collectives"] for _ in range(row["count"]))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return record(tmp_path_factory.mktemp("alone") / "job", PROGRAM)


@pytest.fixture(scope="module", params=[None, 1])
def pair(request, tmp_path_factory):
    """The program on two ranks, and the size of its buckets in MiB, if it sets one."""
    size = [] if request.param is None else [request.param]
    return record(tmp_path_factory.mktemp("pair") / "job", PROGRAM, *size, ranks=2), request.param


def test_buckets_are_those_of_ddp(alone, pair, tmp_path):
    recorded, bucket = pair
    size = [] if bucket is None else ["--bucket", f"{bucket}MiB"]
    changes = edit(alone, tmp_path / "edited", "--dp", 2, *size)
    assert changes["ranks"] == 2 and changes["times_known"]
    (change,) = changes["edits"]
    assert change["certainty"] == "structure exact"
    (buckets,) = change["buckets"]
    assert sum(one["gradients"] for one in buckets) == 8
    etude("convert", recorded, "--to", "linked", "-o", tmp_path / "linked")
    names = [node["name"] for node in json.loads((tmp_path / "linked/linked.0.json").read_text())["nodes"]]
    copies = ("torch::distributed::reducer::mul_out", "torch.distributed.ddp.reducer::copy_bucket_to_grad")
    assert change["copies"] == sum(name in copies for name in names) == 16
    expected = sizes(simulate(recorded))
    assert len(expected) == 2 and sizes(simulate(tmp_path / "edited")) == expected
    assert sorted(one["bytes"] for one in buckets) == expected


def test_a_recorded_pair_becomes_eight_ranks_or_one(pair, tmp_path):
    recorded, _ = pair
    assert edit(recorded, tmp_path / "eight", "--dp", 8)["ranks"] == 8
    eight = simulate(tmp_path / "eight", 8)
    assert sizes(eight) == sizes(simulate(recorded)) and {row["ranks"] for row in eight["collectives"]} == {8}
    assert edit(recorded, tmp_path / "one", "--dp", 1)["ranks"] == 1
    assert simulate(tmp_path / "one", 1)["collectives"] == []


def step(job, network=NETWORK.format(2)):
    return json.loads(etude("simulate", job, "--network", network, "--json").stdout)["step_ns"]


def test_other_buckets_are_those_of_a_job_with_them(pair, tmp_path):
    recorded, _ = pair
    for size, count in ((1, 2), (25, 1)):
        (change,) = edit(recorded, tmp_path / f"{size}", "--bucket", f"{size}MiB")["edits"]
        assert change["certainty"] == "structure exact"
        if count == 2:  # those of the recording
            assert "as recorded" in change["text"] and step(tmp_path / f"{size}") == step(recorded)
        else:
            assert change["recorded"] == 2
        simulated = sizes(simulate(tmp_path / f"{size}"))
        assert len(simulated) == count and sum(simulated) == sum(sizes(simulate(recorded)))


def test_communication_is_edited(pair, tmp_path):
    recorded, _ = pair
    slow = "Ring(2):0.1GB/s,1us"
    (overlap,) = edit(recorded, tmp_path / "off", "--overlap", "off")["edits"]
    assert overlap["certainty"] == "structure exact" and overlap["nodes"] == 4
    (same,) = edit(recorded, tmp_path / "on", "--overlap", "on")["edits"]
    assert same["nodes"] == 0 and step(tmp_path / "on") == step(recorded) <= step(tmp_path / "off")
    assert step(tmp_path / "off", slow) > step(recorded, slow)
    (smaller,) = edit(recorded, tmp_path / "smaller", "--compress", "4")["edits"]
    assert smaller["certainty"] == "modelled" and "time of compression is unknown" in smaller["text"]
    assert sizes(simulate(tmp_path / "smaller")) == [-(-size // 4) for size in sizes(simulate(recorded))]
    edit(recorded, tmp_path / "timed", "--compress", "4,1GB/s")
    assert step(tmp_path / "timed", slow) > step(tmp_path / "smaller", slow) < step(recorded, slow)
    edit(recorded, tmp_path / "scattered", "--all-reduce", "reduce-scatter+all-gather")
    assert abs(step(tmp_path / "scattered") - step(recorded)) <= 2000
    edit(recorded, tmp_path / "four", "--dp", "4", "--all-reduce", "hierarchical:2")
    kinds = {(row["type"], row["ranks"]) for row in simulate(tmp_path / "four", 4)["collectives"]}
    assert kinds == {("reduce_scatter", 2), ("all_reduce", 2), ("all_gather", 2)}


def test_reductions_after_the_pass_can_overlap(tmp_path):
    late = record(tmp_path / "late", pathlib.Path(__file__).parent / "late_reduction_program.py", ranks=2)
    slow = "Ring(2):0.1GB/s,1us"
    (overlap,) = edit(late, tmp_path / "on", "--overlap", "on")["edits"]
    assert overlap["nodes"] == 12 and step(tmp_path / "on", slow) < step(late, slow)
    (same,) = edit(late, tmp_path / "off", "--overlap", "off")["edits"]
    assert same["nodes"] == 0 and step(tmp_path / "off", slow) == step(late, slow)
    (smaller,) = edit(late, tmp_path / "smaller", "--compress", "2")["edits"]
    assert smaller["nodes"] == 12
    told = etude("whatif", late, "--bucket", "1MiB", "-o", tmp_path / "none", code=3).stderr
    assert "reduced one by one after the backward pass" in told and not (tmp_path / "none").exists()


def test_times_of_the_recorded_job_give_its_step(pair, tmp_path):
    recorded, _ = pair
    machine = tmp_path / "machine.toml"
    etude("calibrate", "--from", recorded, "-o", machine)
    simulated = json.loads(etude("simulate", recorded, "--machine", machine, "--json").stdout)
    assert simulated["model"] == "measured-1" and simulated["step_ns"] > 0
    assert {row["algorithm"] for row in simulated["collectives"]} == {"measured"}
    assert sizes(simulated) == sizes(simulate(recorded))
    # With the time of each communication, the simulation is the recorded step but for waits of threads for a core.
    simulated = json.loads(etude("simulate", recorded, "--machine", "recorded", "--with-recording", "--json").stdout)
    assert simulated["model"] == "recorded-1"
    assert 0.5 < simulated["step_ns"] / simulated["recorded_step_ns"] < 2


def test_no_times_of_a_job_of_one_rank(alone, tmp_path):
    done = etude("calibrate", "--from", alone, "-o", tmp_path / "machine.toml", code=3)
    assert "found no communication with times on all of its ranks" in done.stderr
    assert not (tmp_path / "machine.toml").exists()


def test_times_are_scaled(alone, tmp_path):
    def step(folder):
        return simulate(tmp_path / folder, 1)["step_ns"]

    edit(alone, tmp_path / "same", "--scale", "compute=1.0001,aten::none=1")
    edit(alone, tmp_path / "double", "--scale", "compute=2,host=2")
    assert step("double") == pytest.approx(2 * step("same"), rel=0.01)
    edit(alone, tmp_path / "dropped", "--drop", "aten::addmm", "--drop", "aten::mm")
    edit(alone, tmp_path / "twice", "--scale", "aten::addmm=2,aten::mm=2")
    products = step("twice") - step("same")
    assert products > 0 and step("same") - step("dropped") == pytest.approx(products, rel=0.01)
    # A simulated job is no longer one to edit.
    told = etude("whatif", tmp_path / "same", "--dp", 2, "-o", tmp_path / "again", code=3).stderr
    assert "expected a recorded one" in told


def peak(job):
    """Peak memory of the tensors of a recorded job's largest rank."""
    (*rows,) = json.loads(etude("memory", job, "--json").stdout)["summary"]
    return max(row["peak_bytes"] for row in rows)


def names(job):
    """Names of the operators of a job, in order. Whether a label has time of its own differs between recordings."""
    nodes = json.loads(etude("jsonize", job / "class.0.et").stdout)["nodes"]
    label = {"name": "etude_kind", "stringVal": "label"}
    return [node["name"] for node in nodes if label not in node["attr"]]


@pytest.mark.parametrize("optimizer", ["loop", "foreach", "kept"])
def test_layers_are_those_of_the_other_model(optimizer, tmp_path):
    recorded = {n: record(tmp_path / f"recorded{n}", TRANSFORMER, n, 4, optimizer) for n in (3, 5)}
    for layers, other in ((3, 5), (5, 3)):
        (change,) = edit(recorded[layers], tmp_path / f"edited{other}", "--layers", other)["edits"]
        assert change["certainty"] == "structure exact" and change["layers"] == layers
        backward = [run["backward"] for run in change["repetitions"]]
        assert backward[optimizer == "kept" :][:3] == [False, True, False]
        edit(recorded[other], tmp_path / f"same{other}", "--layers", other)
        assert names(tmp_path / f"edited{other}") == names(tmp_path / f"same{other}")
    # The memory of the tensors is that of the other program, except for those of a few bytes.
    for layers, other in ((3, 5), (5, 3)):
        (memory,) = edit(recorded[layers], tmp_path / f"memory{other}", "--layers", other)["memory"]
        assert memory["before_bytes"] == peak(recorded[layers])
        assert memory["after_bytes"] == pytest.approx(peak(recorded[other]), rel=1e-3)
    (layers, reduced) = edit(recorded[3], tmp_path / "five", "--layers", 5, "--dp", 2)["edits"]
    (five,) = edit(recorded[5], tmp_path / "recorded five", "--dp", 2)["edits"]
    assert layers["edit"] == "--layers 5" and reduced["buckets"] == five["buckets"]
    assert reduced["copies"] == five["copies"]
    (pipeline,) = edit(recorded[3], tmp_path / "pipeline", "--pp", 3)["edits"]
    assert [stage["layers"] for stage in pipeline["stages"]] == [1, 1, 1]


@pytest.mark.parametrize("sharded", [0, 1])
def test_layers_that_communicate_are_those_of_the_other_model(sharded, tmp_path):
    sizes_ = (f"sharded={sharded}", "steps=6")
    recorded = {n: record(tmp_path / f"recorded{n}", TENSOR, f"layers={n}", *sizes_, ranks=2) for n in (3, 5)}
    for layers, other in ((3, 5), (5, 3)):
        changes = edit(recorded[layers], tmp_path / f"edited{other}", "--layers", other)
        (change,) = changes["edits"]
        assert change["layers"] == layers and [run["backward"] for run in change["repetitions"]] == [False, True, False]
        edit(recorded[other], tmp_path / f"same{other}", "--layers", other)
        assert names(tmp_path / f"edited{other}") == names(tmp_path / f"same{other}")
        expected = simulate(recorded[other])
        assert sizes(simulate(tmp_path / f"edited{other}")) == sizes(expected) and len(sizes(expected)) > 10
        if not sharded:  # an all-reduce, and an operator that waits for it, in each half of a layer and pass
            waits = json.loads(etude("info", recorded[other] / "capture.0.etude", "--json").stdout)["traces"][0]["trust"]["waits"]
            assert waits["count"] - waits["guessed"] == 4 * other
        # The memory of gathered parameters is unknown.
        assert (changes["memory"][0]["after_bytes"] is None) == bool(sharded)


def buckets(job, to, *edits):
    (*_, reduced) = edit(job, to, *edits, "--dp", 2)["edits"]
    return reduced["buckets"]


def test_sizes_are_those_of_the_other_program(tmp_path):
    jobs = {batch: record(tmp_path / f"batch{batch}", TRANSFORMER, 2, batch) for batch in (2, 4, 8)}
    changes = edit(jobs[2], tmp_path / "edited", "--second", jobs[8], "--sizes", "2,8,4")
    (change,) = changes["edits"]
    assert change["certainty"] == "interpolated" and change["retimed"] > 50
    steps = {batch: simulate(job, 1)["step_ns"] for batch, job in jobs.items()}
    assert simulate(tmp_path / "edited", 1)["step_ns"] > 0 and min(steps.values()) > 0
    edit(jobs[4], tmp_path / "same", "--scale", "compute=1.0001")
    assert names(tmp_path / "edited") == names(tmp_path / "same")
    # Gradients do not depend on the batch.
    # The memory of the tensors is that of the other program, except for those of a few bytes.
    peaks = [peak(jobs[batch]) for batch in (2, 4)]
    (memory,) = changes["memory"]
    assert memory["device"] == "cpu" and memory["before_bytes"] == peaks[0]
    assert memory["after_bytes"] > 1.1 * peaks[0] and abs(memory["after_bytes"] / peaks[1] - 1) < 0.01
    both = ("--second", jobs[8], "--sizes", "2,8,4")
    assert buckets(jobs[2], tmp_path / "reduced", *both) == buckets(jobs[4], tmp_path / "reduced4")
    told = etude("whatif", jobs[2], "--second", jobs[8], "--sizes", "2,8,4.5", "-o", tmp_path / "half", code=3).stderr
    assert "expected such that the wanted one is a whole number" in told
    told = etude("whatif", jobs[2], "--second", jobs[2], "--sizes", "2,8,4", "-o", tmp_path / "none", code=3).stderr
    assert "found the same sizes in both recordings" in told


def test_two_recordings_are_of_one_program(alone, tmp_path):
    other = record(tmp_path / "other", TRANSFORMER, 2, 2)
    told = etude("whatif", alone, "--second", other, "--sizes", "1,2,3", "-o", tmp_path / "out", code=3).stderr
    assert "expected two recordings of the same program" in told and not (tmp_path / "out").exists()


def test_stragglers_are_found(tmp_path):
    job = record(tmp_path / "job", pathlib.Path(__file__).parent / "straggler_program.py", 1000, ranks=2)
    simulated = json.loads(etude("simulate", job, "--network", NETWORK.format(2), "--ideal", "--json").stdout)
    everything, rank = simulated["stragglers"][:2]
    assert everything["alone_ns"] == simulated["step_ns"] > everything["mended_ns"]
    assert rank["what"] == "rank 1" and rank["gain_share"] > 0.1
    slowest = next(row for row in simulated["stragglers"] if row["kind"] == "operator")
    assert slowest["what"] in ("aten::mm", "aten::sum") and slowest["slowdown_share"] > 0.1
    # The slow rank multiplies larger matrices, which only FLOPs tell.
    (unknown,) = (row for row in simulated["remedies"] if row["remedy"] == "sequence re-balance")
    assert unknown["certainty"] == "unknown" and unknown["step_ns"] is None
    words = ("--network", NETWORK.format(2), "--compute", "flops", "--ideal", "--json")
    (even,) = (row for row in json.loads(etude("simulate", job, *words).stdout)["remedies"] if row["remedy"] == "sequence re-balance")
    assert even["certainty"] == "modelled" and even["gain_share"] > 0.1
    alone = etude("simulate", job, "--network", NETWORK.format(2), "--table", "stragglers", code=2).stderr
    assert "requires --ideal" in alone


def test_layers_are_needed(alone, tmp_path):
    told = etude("whatif", alone, "-o", tmp_path / "out", "--layers", 4, code=3).stderr
    assert "--layers: found no operators that repeat" in told and not (tmp_path / "out").exists()


@pytest.mark.parametrize("edits, told", [
    (("--sizes", "1,2,3"), "--second and --sizes require each other"),
    (("--second", "job", "--sizes", "2,2,3"), "--sizes: found '2,2,3', expected a size in the job"),
    (("--layers", 0), "--layers: found 0, expected 1 to"),
    ((), "missing edit"),
    (("--dp", 0), "expected 1 to"),
    (("--dp", 2, "--bucket", "much"), "--bucket: found 'much', expected a size with a unit, such as 25MiB"),
    (("--overlap", "half"), "--overlap: found 'half', expected on or off"),
    (("--compress", "0.5"), "--compress: found '0.5', expected a factor from 1"),
    (("--all-reduce", "tree"), "--all-reduce: found 'tree', expected reduce-scatter+all-gather"),
    (("--scale", "comm=2"), "follows from the network"),
    (("--scale", "gelu=2"), "expected comm, compute, matrix, host, or an operator"),
])  # fmt: skip
def test_bad_edits(alone, tmp_path, edits, told):
    assert told in etude("whatif", alone, "-o", tmp_path / "out", *edits, code=2).stderr
    assert not (tmp_path / "out").exists()


def test_edits_without_effect(alone, tmp_path):
    assert "no operator of this name" in etude("whatif", alone, "-o", tmp_path / "out", "--drop", "aten::conv2d", code=3).stderr
    assert not (tmp_path / "out").exists()


def communication(job):
    """Messages and matrix products of each rank, with their numbers and bytes."""
    ranks = {}
    for trace in json.loads(etude("info", job, "--json").stdout)["traces"]:
        messages = [(one["type"], one["count"], one["bytes"]) for one in trace["collectives"]]
        products = {one["name"]: one["count"] for one in trace["operators"] if one["name"] in PRODUCTS}
        ranks[trace["rank"]] = (sorted(messages), products)
    return ranks


def reduced_bytes(edit):
    return sum(bucket["bytes"] for buckets in edit["buckets"] for bucket in buckets)


@pytest.mark.parametrize("schedule, name", [("gpipe", "ScheduleGPipe"), ("1f1b", "Schedule1F1B")])
def test_pipelines_are_those_of_torch(schedule, name, tmp_path):
    recorded = record(tmp_path / "recorded", PIPELINE, name, 4, ranks=2)
    alone = record(tmp_path / "alone", PIPELINE, name, 1)
    # The times of its own messages, which the clocks of two ranks make no shorter than possible.
    etude("calibrate", "--from", recorded, "-o", tmp_path / "own.toml")
    series = tomllib.loads((tmp_path / "own.toml").read_text())["communication"]
    (message,) = [row for row in series if row["type"] == "message"]
    assert message["bytes"] == [4 * 32 * 64 * 4] and 1_000 < message["time_ns"][0] < 1_000_000_000
    plan = ("--pp", 2, "--micro-batches", 4, "--schedule", schedule)
    changes = edit(alone, tmp_path / "edited", *plan)
    (change,) = changes["edits"]
    assert changes["ranks"] == 2 and changes["times_known"] and change["messages"] == 8
    assert change["boundaries"] == [[{"bytes": 4 * 32 * 64 * 4, "gradient": True}]]
    # The memory of the stages is nearly that of the recorded ones, and a lower bound: torch also keeps
    # what it has sent and the buffers that it receives into.
    measured = [row["peak_bytes"] for row in json.loads(etude("memory", recorded, "--json").stdout)["summary"]]
    found = [stage["memory_bytes"]["cpu"] for stage in change["stages"]]
    assert len(found) == len(measured) == 2
    assert all(0.8 * real < of_stage <= real for of_stage, real in zip(found, measured)), (found, measured)
    edit(recorded, tmp_path / "same", "--scale", "compute=1.0001")
    edited = communication(tmp_path / "edited")
    assert edited == communication(tmp_path / "same") and len(edited) == 2
    assert simulate(tmp_path / "edited")["step_ns"] > simulate(alone, 1)["step_ns"]
    # Two replicas of each stage reduce the gradients of data-parallel ranks.
    (_, reduced) = edit(alone, tmp_path / "replicas", *plan, "--dp", 2)["edits"]
    (of_ranks,) = edit(alone, tmp_path / "two", "--dp", 2)["edits"]
    assert reduced_bytes(reduced) == reduced_bytes(of_ranks) and reduced["copies"] == of_ranks["copies"]
    assert simulate(tmp_path / "replicas", 4)["step_ns"] > 0


def products(linked):
    """Matrix products that ran in a linked trace, by operator and sizes. DTensor hands operators on to others."""
    nodes = json.loads(linked.read_text())["nodes"]
    handed_on = {node["ctrl_deps"] for node in nodes if node["name"] == "PythonSubclass"}
    counts = {}
    for node in nodes:
        if node["name"] not in PRODUCTS or node["id"] in handed_on:
            continue
        shapes = [shape for shape in node["inputs"]["shapes"] if len(shape) > 1]
        key = f"{node['name']} {', '.join(' x '.join(map(str, shape)) for shape in shapes)}"
        counts[key] = counts.get(key, 0) + 1
    return counts


def test_tensor_parallel_ranks_are_those_of_torch(tmp_path):
    recorded = record(tmp_path / "recorded", TENSOR, ranks=2)
    alone = record(tmp_path / "alone", TENSOR)
    changes = edit(alone, tmp_path / "edited", "--tp", 2)
    (change,) = changes["edits"]
    assert changes["ranks"] == 2 and changes["times_known"] and change["certainty"] == "modelled"
    # The head is whole on both ranks.
    assert (change["weights"], change["divided_weights"]) == (13, 12) and len(change["whole"]) == 1
    assert change["dimensions"] == [{"size": 4, "count": 2}, {"size": 256, "count": 2}]
    bytes_ = 4 * 32 * 64 * 4
    assert change["reductions"] == [{"bytes": bytes_, "count": 4, "backward": back} for back in (False, True)]
    assert sizes(simulate(tmp_path / "edited")) == sizes(simulate(recorded)) == 8 * [bytes_]
    etude("convert", recorded, "--to", "linked", "-o", tmp_path / "linked")
    for rank in (0, 1):
        ran = products(tmp_path / f"linked/linked.{rank}.json")
        assert {name: count for name, count in change["products"].items() if name.startswith(PRODUCTS)} == ran
    (memory,) = changes["memory"]
    assert memory["after_bytes"] < memory["before_bytes"]


def test_tensor_parallel_layers_are_those_of_the_other_model(tmp_path):
    three, five = (record(tmp_path / f"recorded{n}", TENSOR, f"layers={n}") for n in (3, 5))
    (divided, layers) = edit(three, tmp_path / "edited", "--tp", 2, "--layers", 5)["edits"]
    (expected,) = edit(five, tmp_path / "same", "--tp", 2)["edits"]
    assert layers["layers"] == 3 and divided["reductions"] == expected["reductions"]
    assert names(tmp_path / "edited") == names(tmp_path / "same")
    assert sizes(simulate(tmp_path / "edited")) == sizes(simulate(tmp_path / "same"))


def test_norms_of_divided_gradients_are_reduced_once(tmp_path):
    clipped = record(tmp_path / "clipped", TRANSFORMER, 2, 4, "foreach")
    (change,) = edit(clipped, tmp_path / "edited", "--tp", 2)["edits"]
    assert {"bytes": 4, "count": 1, "backward": False} in change["reductions"]


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    return record(tmp_path_factory.mktemp("transformer") / "job", TENSOR)


def check_sizes(recorded, other, tmp_path, option, size):
    """Compares an edited recording with that of the other program."""
    changes = edit(recorded, tmp_path / "edited", option, size, "--tp", 2, "--dp", 2)
    (resized, divided, reduced) = changes["edits"]
    assert resized["certainty"] == "modelled" and resized["dimensions"][0]["after"] == size
    expected = edit(other, tmp_path / "same", "--tp", 2, "--dp", 2)
    assert [divided[key] for key in ("products", "reductions")] == [expected["edits"][0][key] for key in ("products", "reductions")]
    assert reduced["buckets"] == expected["edits"][1]["buckets"]
    assert changes["memory"][0]["after_bytes"] == pytest.approx(expected["memory"][0]["after_bytes"], rel=0.01)
    assert names(tmp_path / "edited") == names(tmp_path / "same")


@pytest.mark.parametrize("option, size, name", [
    ("--batch", 6, "batch"), ("--sequence", 48, "length"), ("--hidden", 96, "width"), ("--heads", 8, "heads"),
    ("--ffn", 320, "ffn"), ("--vocab", 150, "words"),
])  # fmt: skip
def test_sizes_by_one_recording_are_those_of_the_other_program(transformer, tmp_path, option, size, name):
    check_sizes(transformer, record(tmp_path / "other", TENSOR, f"{name}={size}"), tmp_path, option, size)


@pytest.mark.parametrize("option, size, name, form", [
    ("--hidden", 96, "width", "keys=2"), ("--heads", 8, "heads", "keys=4"), ("--batch", 6, "batch", "checkpoint=1"),
    ("--ffn", 320, "ffn", "autocast=1"), ("--sequence", 48, "length", "keys=2"),
])  # fmt: skip
def test_sizes_of_rotary_embeddings_checkpoints_and_autocast(tmp_path, option, size, name, form):
    recorded = record(tmp_path / "recorded", ROTARY, form)
    forms = {"keys=8" if option == "--heads" else form, f"{name}={size}"}
    check_sizes(recorded, record(tmp_path / "other", ROTARY, *forms), tmp_path, option, size)
