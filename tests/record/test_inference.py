"""Programs without an optimizer step: steps are calls of the outermost module."""

from conftest import LIGHT, check_traces, names_of, program


def test_inference_loop(run):
    result = run(
        program(
            """
            model.eval()
            with torch.inference_mode():
                for _ in range(12):
                    model(torch.randn(5, 8)).argmax()
            """
        ).replace("optimizer = ", "unused = lambda: "),
    )
    host = check_traces(result)
    rank = result.rank()
    assert (rank["step_kind"], rank["step_pattern"]) == ("module", ["Sequential"])
    assert rank["signatures"][0]["description"] == "Sequential eval no_grad f32[5,8]"
    assert rank["recorded_step"]["modes"] == {"grad": False, "inference": True, "autocast": {}}
    assert names_of(host).count("aten::linear") == 2
    assert names_of(host).count("aten::argmax") == 1


MODELS = LIGHT + """
import torch
from torch import nn

class Encoder(nn.Linear): pass
class Decoder(nn.Linear): pass
class Scale(nn.Module):
    def forward(self, x):
        return x * 2
encoder, decoder, scale = Encoder(4, 4), Decoder(4, 4), Scale()
torch.set_grad_enabled(False)
"""


def test_two_outermost_modules_are_one_step(run):
    result = run(
        MODELS
        + """
for _ in range(14):
    decoder(scale(encoder(torch.randn(2, 4))))
"""
    )
    host = check_traces(result)
    assert result.rank()["step_pattern"] == ["Encoder", "Decoder"]
    assert names_of(host).count("aten::linear") == 2


def test_decoder_that_runs_several_times(run):
    result = run(
        MODELS
        + """
for _ in range(14):
    x = encoder(torch.randn(2, 4))
    for _ in range(3):
        x = decoder(x)
"""
    )
    check_traces(result)
    assert result.rank()["step_pattern"] == ["Encoder"] + ["Decoder"] * 3


def test_model_that_is_replaced_is_found_again(run):
    result = run(
        MODELS
        + """
for _ in range(4):
    encoder(torch.randn(2, 4))
encoder = nn.Sequential(Encoder(4, 8), nn.ReLU())
for _ in range(40):
    encoder(torch.randn(2, 4))
"""
    )
    check_traces(result)
    assert result.rank()["step_pattern"] == ["Sequential"]


def test_autocast_is_noted(run):
    result = run(
        MODELS
        + """
with torch.autocast("cpu", dtype=torch.bfloat16):
    for _ in range(12):
        encoder(torch.randn(2, 4))
"""
    )
    assert result.rank()["recorded_step"]["modes"]["autocast"] == {"cpu": "bfloat16"}


def test_validation_before_training_is_not_taken_for_the_step(run):
    result = run(
        program(
            """
            with torch.no_grad():
                for _ in range(12):
                    model(torch.randn(9, 8))
            for _ in range(12):
                train()
            """
        )
    )
    check_traces(result)
    assert result.rank()["step_kind"] == "optimizer"


def test_training_after_a_recorded_inference_is_recorded_again(run):
    result = run(
        MODELS
        + """
for _ in range(12):
    encoder(torch.randn(2, 4))
torch.set_grad_enabled(True)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
for _ in range(12):
    optimizer.zero_grad()
    encoder(torch.randn(2, 4)).sum().backward()
    optimizer.step()
"""
    )
    check_traces(result)
    assert result.rank()["step_kind"] == "optimizer"


def test_scripted_model(run):
    result = run(
        MODELS
        + """
model = torch.jit.script(nn.Sequential(encoder, nn.ReLU(), decoder))
for _ in range(14):
    model(torch.randn(2, 4))
"""
    )
    check_traces(result)
    assert result.rank()["step_kind"] == "module"


def test_profiler_steps_of_the_program_end_steps(run):
    result = run(
        MODELS
        + """
from torch.profiler import profile, schedule, ProfilerActivity
wait = schedule(wait=1000, warmup=1, active=1)
with profile(activities=[ProfilerActivity.CPU], schedule=wait) as profiler:
    for i in range(20):
        for _ in range(1 + i % 3):
            encoder(torch.randn(2, 4))
        profiler.step()
""",
        steps=9,
    )
    check_traces(result)
    assert result.rank()["step_kind"] == "profiler"
