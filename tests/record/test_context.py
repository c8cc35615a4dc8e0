"""`with etude.record(...)`."""

import pytest
from conftest import check_traces, program

BLOCK = """
import warnings
import etude
"""


def block(text):
    return BLOCK + program(text)


def test_block_is_recorded(run):
    result = run(
        block(
            """
            with etude.record(os.environ["CAPTURE"], warmup=2, steps=3) as recording:
                for i in range(20):
                    train()
                    if recording.done:
                        break
            print(i, recording.done)
            """
        ),
        hook=False,
    )
    assert (result.code, result.out) == (0, "5 True\n"), result.err
    check_traces(result)
    assert result.hidden() == [".lock"]
    assert result.job()["versions"]["etude"]


def test_capture_has_the_mark_of_its_user_or_says_why_not(run, tmp_path):
    text = block(
        """
        with etude.record(os.environ["CAPTURE"], warmup=1, steps=1, overwrite=True) as recording:
            for i in range(6):
                train()
        """
    )
    result = run(text, hook=False, environment={"XDG_STATE_HOME": str(tmp_path / "state")})
    assert result.code == 0 and len(result.job()["mark"]) == 64, result.err
    assert not any("mark" in note for note in result.rank()["notes"])
    (tmp_path / "file").write_text("")
    result = run(text, hook=False, environment={"XDG_STATE_HOME": str(tmp_path / "file")})
    assert result.code == 0 and "mark" not in result.job()
    (note,) = [note for note in result.rank()["notes"] if "mark" in note]
    assert note.startswith("the capture has no user mark, so `etude compare --run` requires --trust: ")
    assert note in result.err  # as a RecordingWarning


def test_optimizer_and_scheduler_from_before_the_block(run):
    result = run(
        block(
            """
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
            train()
            step = torch.optim.SGD.step
            with etude.record(os.environ["CAPTURE"], warmup=2, steps=3, strict=True):
                for i in range(8):
                    train()
                    schedule.step()
            train()
            assert torch.optim.SGD.step is step
            assert "etude/recording" not in optimizer.step.__code__.co_filename
            """
        ),
        hook=False,
    )
    assert result.code == 0, result.err
    check_traces(result)
    assert "lr_scheduler" not in result.err


def test_explicit_steps(run):
    result = run(
        block(
            """
            with etude.record(os.environ["CAPTURE"], warmup=2, steps=3, strict=True) as recording:
                for i in range(8):
                    train()
                    train()
                    recording.step()
            """
        ),
        hook=False,
    )
    assert result.code == 0, result.err
    host = check_traces(result)
    assert result.rank()["step_kind"] == "explicit"
    assert sum(n["name"] == "Optimizer.step#SGD.step" for n in host["nodes"]) == 2


def test_block_that_ends_too_early_warns(run):
    result = run(
        block(
            """
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with etude.record(os.environ["CAPTURE"], warmup=2, recorder="observers"):
                    for i in range(8):
                        train()
            print(caught[0].category.__name__, caught[0].message)
            try:
                with etude.record(os.environ["CAPTURE"], strict=True):
                    train()
            except etude.RecordingError as error:
                print("RecordingError", error)
            """
        ),
        hook=False,
    )
    first, second = result.out.splitlines()
    assert first.startswith("RecordingWarning no capture: the program ended after 8 steps")
    assert "warmup=1, steps=6 would fit the number of steps" in first
    assert second.startswith("RecordingError no capture")
    assert result.names() == []


def test_block_that_ends_soon_leaves_an_early_capture(run):
    result = run(
        block(
            """
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with etude.record(os.environ["CAPTURE"], recorder="observers", strict=True) as recording:
                    for i in range(8):
                        train()
            print(recording.done, caught[0].category.__name__, caught[0].message)
            """
        ),
        hook=False,
    )
    assert result.code == 0, result.err
    assert result.out.startswith("False RecordingWarning recorded early, during warm-up, because the program ended after 8")
    check_traces(result)
    assert result.rank()["recorded_step"]["early"]


@pytest.mark.parametrize("steps", [1, 5])
def test_block_that_fails_keeps_the_earlier_capture(run, steps):
    result = run(
        block(
            f"""
            counts = {{"warmup": 4, "steps": 3, "recorder": "observers"}}
            with etude.record(os.environ["CAPTURE"], **counts):
                for _ in range(9):
                    train()
            job = open(os.environ["CAPTURE"] + "/job.json").read()
            try:
                with etude.record(os.environ["CAPTURE"], overwrite=True, **counts):
                    for _ in range({steps}):
                        train()
                    raise KeyError("mine")
            except KeyError:
                print(open(os.environ["CAPTURE"] + "/job.json").read() == job)
            """
        ),
        hook=False,
    )
    assert (result.code, result.out) == (0, "True\n"), result.err
    assert "the earlier capture is unchanged" in result.err
    check_traces(result)
    assert result.hidden() == [".lock"]


def test_ranks_replace_a_capture_together(tmp_path):
    from etude.recording.replacement import Replacement, holds_capture

    (tmp_path / "job.json").write_text('{"format": "etude-job", "ranks": {}}')
    (tmp_path / "linked.0.json").write_text("of the earlier one")
    (tmp_path / "notes.txt").write_text("somebody's")
    assert holds_capture(str(tmp_path))
    first, second = (Replacement(str(tmp_path), rank, 2) for rank in range(2))
    (tmp_path / ".etude-recording" / "job.json").write_text('{"format": "etude-job", "ranks": {"0": {}, "1": {}}}')
    assert first.ended(well=True)
    assert (tmp_path / "linked.0.json").exists()
    assert second.ended(well=True)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [".lock", "job.json", "notes.txt"]
    assert "1" in (tmp_path / "job.json").read_text()


def test_nested_blocks_are_an_error(run):
    result = run(
        block(
            """
            with etude.record(os.environ["CAPTURE"], warmup=2, steps=3):
                try:
                    with etude.record(os.environ["CAPTURE"] + "2"):
                        pass
                except etude.RecordingError as error:
                    print(error)
                for _ in range(8):
                    train()
            """
        ),
        hook=False,
    )
    assert result.out == "a recording is already active in this process\n"
    check_traces(result)


def test_exception_in_the_block_passes_through(run):
    result = run(
        block(
            """
            try:
                with etude.record(os.environ["CAPTURE"]):
                    train()
                    raise KeyError("mine")
            except KeyError:
                print("mine")
            train()
            """
        ),
        hook=False,
    )
    assert (result.code, result.out) == (0, "mine\n")
    assert result.names() == []


def test_earlier_capture_is_replaced_only_on_demand(run):
    result = run(
        block(
            """
            def record(**more):
                with etude.record(os.environ["CAPTURE"], warmup=2, steps=3, strict=True, **more):
                    for _ in range(8):
                        train()
            record()
            try:
                record()
            except etude.RecordingError as error:
                print("overwrite=True" in str(error))
            record(overwrite=True)
            """
        ),
        hook=False,
    )
    assert (result.code, result.out) == (0, "True\n"), result.err
    check_traces(result)


def test_block_under_the_command_is_inert(run, tmp_path):
    from conftest import PYTHON_FOLDER

    result = run(
        block(
            """
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with etude.record("elsewhere") as recording:
                    for _ in range(10):
                        train()
            print(caught[0].category.__name__, recording.done, os.path.exists("elsewhere"))
            """
        ),
        path=[PYTHON_FOLDER],
    )
    assert result.out == "RecordingWarning False False\n"
    check_traces(result)


def test_bad_arguments(run):
    result = run(
        """
import etude, sys
assert "torch" not in sys.modules
for arguments in ({"warmup": -1}, {"steps": 0}, {"kind": "epoch"}):
    try:
        etude.record("x", **arguments)
    except ValueError as error:
        print(error)
""",
        hook=False,
        fresh=True,
    )
    assert len(result.out.splitlines()) == 3
