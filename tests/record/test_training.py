"""Unmodified training programs under the hook."""

import pytest
from conftest import LIGHT, attributes, check_traces, names_of, program


def test_plain_training(run):
    result = run(
        program(
            """
            for _ in range(10):
                train()
            print("to stdout")
            print("to stderr", file=sys.stderr)
            """
        )
    )
    assert (result.code, result.out, result.err) == (0, "to stdout\n", "to stderr\n")
    assert result.names() == ["device.0.json.gz", "host.0.json.gz", "job.json"]
    check_traces(result)
    job, rank = result.job(), result.rank()
    assert (job["format"], job["version"], job["world_size"]) == ("etude-job", 1, 1)
    assert rank["step_kind"] == "optimizer" and rank["step_pattern"] == ["SGD"]
    (signature,) = rank["signatures"]
    assert signature["description"] == "SGD; Sequential f32[5,8]"
    assert (signature["timed"], signature["recorded"]) == (3, True)
    assert [step["index"] for step in rank["timed_steps"]] == [2, 3, 4]
    assert all(step["wall_ns"] > 0 and step["cpu_ns"] > 0 for step in rank["timed_steps"])
    assert rank["recorded_step"]["index"] == 5
    assert rank["state"]["default_dtype"] == "float32"
    assert rank["threads"]["intra_op"] == 1
    assert not any(name.startswith(".tmp") for name in result.hidden())


def test_traced_step_is_one_whole_iteration(run):
    host = check_traces(run(program("for _ in range(10): train()")))
    names = names_of(host)
    assert names.count("Optimizer.step#SGD.step") == 1
    assert names.count("Optimizer.zero_grad#SGD.zero_grad") == 1
    assert names.count("aten::linear") == 2
    assert names.count("autograd::engine::evaluate_function: AddmmBackward0") == 2


def test_several_steps_in_one_trace(run):
    result = run(program("for _ in range(12): train()"), record_steps=3)
    host = check_traces(result, steps=3)
    assert names_of(host).count("Optimizer.step#SGD.step") == 3
    assert result.rank()["recorded_step"]["steps"] == 3


GAN = LIGHT + """
import torch
from torch import nn

class Generator(nn.Linear): pass
class Critic(nn.Linear): pass
generator, critic = Generator(3, 6), Critic(6, 1)
first = torch.optim.Adam(critic.parameters())
second = torch.optim.Adam(generator.parameters())

def step(optimizer, loss):
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


def test_two_optimizers_are_one_step(run):
    result = run(
        GAN
        + """
for _ in range(12):
    step(first, critic(generator(torch.randn(4, 3)).detach()).mean())
    step(second, -critic(generator(torch.randn(4, 3))).mean())
"""
    )
    host = check_traces(result)
    assert result.rank()["step_pattern"] == ["Adam", "Adam#2"]
    assert names_of(host).count("Optimizer.step#Adam.step") == 2
    assert result.rank()["signatures"][0]["description"] == (
        "Adam Adam#2; Generator f32[4,3] x2; Critic f32[4,6] x2"
    )


def test_critic_that_steps_five_times(run):
    result = run(
        GAN
        + """
for _ in range(14):
    for _ in range(5):
        step(first, critic(generator(torch.randn(4, 3)).detach()).mean())
    step(second, -critic(generator(torch.randn(4, 3))).mean())
"""
    )
    host = check_traces(result)
    assert result.rank()["step_pattern"] == ["Adam"] * 5 + ["Adam#2"]
    assert names_of(host).count("Optimizer.step#Adam.step") == 6


def test_an_optimizer_that_joins_late_gives_a_new_recording(run):
    result = run(
        GAN
        + """
for _ in range(20):
    step(first, critic(generator(torch.randn(4, 3)).detach()).mean())
for _ in range(30):
    step(first, critic(generator(torch.randn(4, 3)).detach()).mean())
    step(second, -critic(generator(torch.randn(4, 3))).mean())
"""
    )
    check_traces(result)
    assert result.rank()["step_pattern"] == ["Adam", "Adam#2"]
    assert any("began again" in note for note in result.rank()["notes"])


def test_scheduler_and_gradient_accumulation(run):
    result = run(
        program(
            """
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
            for _ in range(10):
                for _ in range(4):
                    model(torch.randn(5, 8)).sum().backward()
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            """
        )
    )
    assert result.err == ""
    host = check_traces(result)
    assert names_of(host).count("Optimizer.step#SGD.step") == 1
    assert names_of(host).count("autograd::engine::evaluate_function: SumBackward0") == 4
    assert result.rank()["signatures"][0]["description"] == "SGD; Sequential f32[5,8] x4"


def test_closure_optimizer(run):
    result = run(
        program(
            """
            optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
            x, y = torch.randn(5, 8), torch.randn(5, 4)
            def closure():
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x), y)
                loss.backward()
                return loss
            for _ in range(10):
                optimizer.step(closure)
            """
        )
    )
    check_traces(result)
    assert result.rank()["step_pattern"] == ["LBFGS"]


def test_optimizers_within_an_optimizer_count_once(run):
    result = run(
        program(
            """
            class Outer(torch.optim.Optimizer):
                def __init__(self, inner):
                    super().__init__(inner.param_groups[0]["params"], {})
                    self.inner = inner
                def step(self, closure=None):
                    self.inner.step()
            inner, optimizer = optimizer, Outer(optimizer)
            for _ in range(10):
                train()
            """
        )
    )
    check_traces(result)
    assert result.rank()["step_pattern"] == ["Outer"]
    assert result.rank()["signatures"][0]["timed"] == 3


def test_optimizer_that_is_made_anew_for_each_step(run):
    result = run(
        program(
            """
            for _ in range(10):
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                train()
            """
        )
    )
    check_traces(result)
    assert result.rank()["step_pattern"] == ["SGD"]


def test_steps_of_other_shapes_are_told_apart(run):
    result = run(
        program(
            """
            for i in range(60):
                train(batch=7 if i % 4 == 3 else 5)
            """
        ),
        steps=9,
    )
    host = check_traces(result)
    by_text = {s["description"]: s for s in result.rank()["signatures"]}
    common, rare = by_text["SGD; Sequential f32[5,8]"], by_text["SGD; Sequential f32[7,8]"]
    assert common["recorded"] and not rare["recorded"]
    assert common["timed"] == 9 and rare["timed"] >= 2
    recorded = result.rank()["recorded_step"]
    assert recorded["signature"] == common["id"]
    assert recorded["index"] % 4 != 3
    linear = next(n for n in host["nodes"] if n["name"] == "aten::linear")
    assert linear["inputs"]["shapes"][0] == [5, 8]


def test_evaluation_between_steps_has_its_own_signature(run):
    result = run(
        program(
            """
            for i in range(30):
                train()
                if i % 5 == 4:
                    model.eval()
                    with torch.no_grad():
                        for _ in range(3):
                            model(torch.randn(9, 8))
                    model.train()
            """
        ),
        steps=8,
    )
    check_traces(result)
    texts = [s["description"] for s in result.rank()["signatures"]]
    assert "SGD; Sequential eval no_grad f32[9,8] x3; Sequential f32[5,8]" in texts
    recorded = [s for s in result.rank()["signatures"] if s["recorded"]]
    assert [s["description"] for s in recorded] == ["SGD; Sequential f32[5,8]"]


def test_lengths_that_never_repeat_still_give_a_capture(run):
    result = run(program("for i in range(80): train(batch=i + 1)"), steps=3)
    check_traces(result)
    assert any("no timed step has the signature" in note for note in result.rank()["notes"])


def test_lengths_that_seldom_repeat_are_said_to_be_timed_seldom(run):
    result = run(program("for i in range(80): train(batch=i % 12 + 1)"), steps=4)
    recorded = [s for s in result.rank()["signatures"] if s["recorded"]]
    assert 0 < recorded[0]["timed"] < 3
    assert any("of 4 requested steps" in note for note in result.rank()["notes"])


def test_range_of_the_user_around_the_step_leaves_no_dangling_parent(run):
    result = run(
        program(
            r"""
            from torch.profiler import record_function
            for _ in range(10):
                with record_function('my "step"\\x'):
                    train()
            """
        )
    )
    host = check_traces(result)
    assert result.rank()["recorded_step"]["reattached_nodes"] > 0
    assert any("range" in note for note in result.rank()["notes"])
    assert "aten::linear" in names_of(host)


def test_a_label_of_gloo_that_ends_after_the_step_is_there(run):
    # Gloo's threads wake the waiting threads before they end the label of a collective.
    result = run(
        program(
            """
            import threading, time, types
            torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
            def work(begun, may_end):
                with torch.autograd.profiler.record_function("gloo:all_reduce"):
                    begun.set()
                    may_end.wait()
            def end_label(seconds=0):
                may_end.set()
                thread.join()
            # While the recorder waits, the label ends, however long that takes.
            (step_recording,) = [m for name, m in sys.modules.items() if name.endswith("recording.step_recording")]
            step_recording.time = types.SimpleNamespace(sleep=end_label)
            for _ in range(10):
                loss = model(torch.randn(5, 8)).sum()
                loss.backward()
                begun, may_end = threading.Event(), threading.Event()
                thread = threading.Thread(target=work, args=(begun, may_end))
                thread.start()
                begun.wait()
                optimizer.step()
                end_label()
            """
        )
    )
    assert "gloo:all_reduce" in names_of(result.host())


def test_where_a_program_waits_for_gloo_is_said(run):
    result = run(
        program(
            """
            import torch.distributed as dist
            dist.init_process_group("gloo", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
            plain = dist.Work.wait
            for _ in range(10):
                loss = model(torch.randn(5, 8)).sum()
                loss.backward()
                work = dist.all_reduce(loss.detach(), async_op=True)
                optimizer.zero_grad(set_to_none=False)
                work.wait()
                optimizer.step()
            assert dist.Work.wait is plain
            """
        )
    )
    assert result.code == 0, result.err
    names = names_of(result.host())
    assert names.count("torch.distributed.Work.wait") == 1
    assert names.index("c10d::allreduce_") < names.index("torch.distributed.Work.wait")


def test_odd_names_of_ranges_give_valid_files(run):
    result = run(
        program(
            r"""
            from torch.profiler import record_function
            for _ in range(10):
                with record_function('my "range" \\d, "ctrl_deps": 7'):
                    loss = model(torch.randn(5, 8)).sum()
                loss.backward()
                optimizer.step()
            """
        )
    )
    host = check_traces(result)
    assert r'my "range" \d, "ctrl_deps": 7' in names_of(host)


def test_ranges_of_indices_are_recorded_and_unwritten_memory_is_not(run):
    result = run(
        program(
            """
            table = nn.Embedding(100, 8)
            optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
            for _ in range(10):
                optimizer.zero_grad()
                table(torch.randint(10, 20, (64,))).sum().backward()
                optimizer.step()
            """
        )
    )
    host = check_traces(result)
    ranges = {n["name"]: attributes(n)["tensor_range"] for n in host["nodes"]}
    assert ranges["aten::embedding"].startswith('{"1":[1')
    assert ranges["aten::random_"] == ""
    assert result.rank()["recorded_step"]["integer_ranges"] is True


def test_input_without_data_does_not_break_the_program(run):
    result = run(
        program(
            """
            for _ in range(12):
                torch.zeros(3, dtype=torch.int64, device="meta") + 1
                train()
            print("fine")
            """
        )
    )
    assert result.out == "fine\n"
    check_traces(result)
    assert result.rank()["recorded_step"]["integer_ranges"] is False


def test_model_can_be_copied_and_saved_at_any_time(run):
    result = run(
        program(
            """
            import copy, io
            for _ in range(12):
                train()
                copy.deepcopy(model)(torch.randn(1, 8))
                torch.save(model, io.BytesIO())
            print("fine")
            """
        )
    )
    assert result.out == "fine\n"
    check_traces(result)


def test_recording_leaves_nothing_behind(run):
    result = run(
        program(
            """
            call, made = nn.Module.__call__, torch.optim.Optimizer.profile_hook_step
            for _ in range(12):
                train()
            assert nn.Module.__call__ is nn.Module._wrapped_call_impl, nn.Module.__call__
            assert "__call__" not in vars(nn.Sequential)
            assert torch.optim.Optimizer.profile_hook_step is not made
            assert torch.profiler.profile.step.__module__ == "torch.profiler.profiler"
            assert not torch.autograd._profiler_enabled()
            print("fine")
            """
        )
    )
    assert (result.out, result.err) == ("fine\n", "")


def test_same_numbers_with_and_without_recording(run):
    source = program("for _ in range(12): loss = train()\nprint(loss.item())")
    assert run(source).out == run(source, environment={"ETUDE_RECORD_DIR": ""}).out


@pytest.mark.parametrize("where", ["prepare_trace", "start_trace", "stop_trace"])
def test_a_profiler_that_fails_is_ended(run, where):
    source = f"""
    real = torch.profiler._KinetoProfile.{where}
    def fails(profile):
        if {where != "stop_trace"}:
            real(profile)
        torch.profiler._KinetoProfile.{where} = real
        raise ValueError("odd")
    torch.profiler._KinetoProfile.{where} = fails
    for _ in range(12): train()
    own = torch.profiler.ExecutionTraceObserver()
    own.register_callback(os.environ["CAPTURE"] + "/own.json")
    own.unregister_callback()
    print(torch.autograd._profiler_enabled())
    """
    result = run(program(source))
    assert (result.code, result.out) == (0, "False\n"), result.err
    assert result.names() == ["own.json"] and "ValueError: odd" in result.status()["reason"]
    assert not any(name.startswith(".tmp") for name in result.hidden())
