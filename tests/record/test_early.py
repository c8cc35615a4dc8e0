"""Programs that end before a warm step is recorded."""

import os
import pathlib
import sys

import pytest
from conftest import TWO_RANKS, check_traces, program

BIN = pathlib.Path(os.environ.get("ETUDE_BIN", "build/bin"))
LIBRARY = (BIN.parent / "lib/etude/libetude_recorder.so").resolve()
NATIVE = {"ETUDE_RECORD_RECORDER": "auto", "ETUDE_RECORD_LIBRARY": str(LIBRARY)}
DEFAULTS = {"warmup": 5, "steps": 20}


@pytest.mark.parametrize("count, timed", [(3, [1]), (5, [1, 3, 4]), (7, [1, 3, 4, 5, 6]), (9, [5, 6, 7, 8])])
def test_the_third_step_is_kept(run, count, timed):
    result = run(program(f"for _ in range({count}): train()"), **DEFAULTS)
    check_traces(result)
    rank = result.rank()
    assert (rank["recorded_step"]["index"], rank["recorded_step"]["early"]) == (2, True)
    assert [step["index"] for step in rank["timed_steps"]] == timed
    (signature,) = rank["signatures"]
    assert signature["timed"] == len(timed)
    assert any(f"the program ended after {count} steps" in note for note in rank["notes"])
    assert all(not name.startswith(".tmp") for name in result.hidden())


def test_nothing_remains_of_it_beside_a_warm_one(run):
    result = run(program("for _ in range(26): train()"), **DEFAULTS)
    check_traces(result)
    assert result.names() == ["device.0.json.gz", "host.0.json.gz", "job.json"]
    rank = result.rank()
    assert rank["recorded_step"]["index"] == 25 and "early" not in rank["recorded_step"]
    assert [step["index"] for step in rank["timed_steps"]] == list(range(5, 25))
    assert rank["notes"] == []


@pytest.mark.parametrize("end", ["raise ValueError('mine')", "sys.exit(3)", "raise KeyboardInterrupt"])
def test_what_was_timed_before_the_end_is_kept(run, end):
    result = run("import sys\n" + program(f"for _ in range(10): train()\n{end}"), **DEFAULTS)
    assert result.code != 0
    check_traces(result)
    assert len(result.rank()["timed_steps"]) == 5


@pytest.mark.parametrize("number", ["KILL", "TERM"])
def test_the_native_recorder_survives_a_signal(run, number):
    result = run(
        program(
            f"""
            import os, signal, sys
            sys.modules["_etude_recording.early_capture"]._UPDATE_LEAST_NS = 0
            sys.modules["_etude_recording.early_capture"]._UPDATE_FACTOR = 0
            for _ in range(10): train()
            os.kill(os.getpid(), signal.SIG{number})
            """
        ),
        environment=NATIVE,
        fresh=True,
        **DEFAULTS,
    )
    assert result.code < 0
    assert result.names() == ["capture.0.etude", "job.json"]
    rank = result.rank()
    assert len(rank["timed_steps"]) == 5
    assert any("the program was at step 10 when this was written" in note for note in rank["notes"])


def test_a_later_definition_of_a_step_takes_its_place(run):
    result = run(
        program(
            """
            for _ in range(4): train()
            second = torch.optim.Adam([torch.nn.Parameter(torch.ones(2))])
            for group in second.param_groups:
                group["params"][0].grad = torch.ones(2)
            for _ in range(8):
                train()
                second.step()
            """
        ),
        **DEFAULTS,
    )
    rank = result.rank()
    assert rank["step_pattern"] == ["SGD", "Adam"] and rank["recorded_step"]["early"]
    host = check_traces(result)
    assert sum(node["name"] == "Optimizer.step#Adam.step" for node in host["nodes"]) == 1


def test_ranks_record_the_same_step(run):
    source = """
        import torch.distributed as dist
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
        for _ in range(8): train()
        dist.destroy_process_group()
    """
    result = run(program(source), command=[sys.executable, *TWO_RANKS], **DEFAULTS)
    assert result.code == 0, result.err
    for rank in range(2):
        check_traces(result, rank)
        assert result.rank(rank)["recorded_step"]["index"] == 2
        assert len(result.rank(rank)["timed_steps"]) == 3


def test_long_steps_need_not_be_many(run):
    result = run(
        program(
            """
            import sys
            sys.modules["_etude_recording.recorder"]._LONG_NS = 0
            for _ in range(12): train()
            """
        ),
        **DEFAULTS,
    )
    check_traces(result)
    rank = result.rank()
    assert "early" not in rank["recorded_step"]
    assert (rank["recorded_step"]["index"], len(rank["timed_steps"])) == (7, 3)
