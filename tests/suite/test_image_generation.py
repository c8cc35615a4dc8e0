"""Image generation: the paper's networks on a small folder of pictures, its controls, and wrong files."""

import json
import os
import pathlib
import signal
import struct
import subprocess

import pytest
from on_terminal import OnTerminal
from paper_data import write_lsun
from pictures import grey_jpeg

BIN = pathlib.Path(os.environ.get("ETUDE_BIN", "build/bin"))
DATA = os.environ["ETUDE_SUITE_DATA"]
LARGEST_WEIGHT = 0.01


def run(data, *options):
    command = [BIN / "etude-torch", "suite", "run", "image-generation", "--data", data, "--threads", "1", *options]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)


def record(done, code=1):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


def dcgan(side, channels, width, ends):
    """Parameters of a generator or critic: convolutions of 4 × 4 without bias, two numbers a channel for each norm."""
    widths = [width << i for i in range((side // 8).bit_length())]
    convolutions = channels * width + sum(a * b for a, b in zip(widths, widths[1:])) + widths[-1] * ends
    norms = widths if ends > 1 else widths[1:]
    return 16 * convolutions + 2 * sum(norms)


def test_paper_scale(tmp_path):
    write_lsun(tmp_path)
    found = record(run(tmp_path, "--scale", "paper", "--batch", 5, "--most-steps", 1, "--frozen", "--json"), 0)
    assert found["parameters"] == dcgan(64, 3, 64, 100) + dcgan(64, 3, 64, 1) == 6_342_272
    assert found["samples"] == 10 and found["target"] is None
    # All pictures are of one grey, whatever their shape, and a generator that knows nothing makes nearly that.
    assert found["figures"] == {"of training images": 0, "of independent pixels": 0}
    assert 0 < found["baseline"] < 0.1 and 0 < found["quality"] < 0.1


def test_a_generator_that_knows_nothing():
    options = ("--most-steps", 1, "--frozen", "--json")
    found = [record(run(DATA, *options, "--seed", seed)) for seed in (1, 1, 2)]
    assert found[0]["parameters"] == dcgan(16, 1, 16, 32) + dcgan(16, 1, 16, 1)
    assert found[0]["samples"] == 4000
    # Nearly grey, where digits are nearly black. Means of batch norms change without learning.
    assert found[0]["baseline"] == pytest.approx(0.69, abs=0.05)
    assert found[0]["quality"] == pytest.approx(found[0]["baseline"], abs=0.02)
    losses = [one["curve"][0]["loss"] for one in found]
    assert losses[0] == losses[1] != losses[2]
    figures = found[0]["figures"]
    assert figures == found[2]["figures"]
    assert 0.005 < figures["of training images"] < 0.02 < 0.05 < figures["of independent pixels"] < 0.07


def tensors(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            yield name, struct.unpack(f"<{(end - begin) // 4}f", raw[8 + size + begin : 8 + size + end])


def test_the_generator_learns():
    found = record(run(DATA, "--most-steps", 30, "--evaluate-every", 10, "--batch", 80, "--json"))
    assert found["quality"] < found["baseline"] / 2


def test_the_critic_is_clipped(tmp_path):
    """By the checkpoint of a run that is stopped."""
    words = ("--batch", 5, "--evaluate-every", 10, "--target", 0, "--most-steps", 10**6, "-o", tmp_path)
    running = OnTerminal([BIN / "etude", "suite", "run", "image-generation", "--data", DATA, "--threads", 1, *words])
    running.wait_for(" of 1000000")  # after some steps
    running.process.send_signal(signal.SIGINT)
    assert running.end() == 130, running.text
    (path,) = tmp_path.glob("*.safetensors")
    kept = dict(tensors(path))
    of = {part: [value for name, values in kept.items() for value in values
                 if name.startswith(f"weights.{part}.") and "running" not in name]
          for part in ("critic", "generator")}  # fmt: skip
    assert len(of["critic"]) == dcgan(16, 1, 16, 1) and len(of["generator"]) == dcgan(16, 1, 16, 32)
    assert max(map(abs, of["critic"])) == pytest.approx(LARGEST_WEIGHT, rel=1e-6)
    assert max(map(abs, of["generator"])) > 0.5  # scales of norms begin about 1


def test_folders(tmp_path):
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 4 and "lsun/train" in done.stderr
    write_lsun(tmp_path)
    for file in (tmp_path / "lsun/val/bedroom").iterdir():
        file.unlink()
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3 and "lsun/val: found no images" in done.stderr


def test_a_damaged_picture(tmp_path):
    write_lsun(tmp_path)
    (tmp_path / "lsun/val/bedroom/1.jpg").write_bytes(grey_jpeg(64)[:40])
    done = run(tmp_path, "--scale", "paper", "--most-steps", 1)
    assert done.returncode == 3 and "bedroom/1.jpg" in done.stderr


def test_no_digits(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 4 and "etude suite setup" in done.stderr
