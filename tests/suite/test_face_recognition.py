"""3D face recognition: the paper's model on a small folder of scans, its ablation, and wrong files."""

import json
import math
import os
import pathlib
import subprocess

import pytest
from paper_data import write_scans

BIN = pathlib.Path(os.environ.get("ETUDE_BIN", "build/bin"))
PEOPLE = 253


def run(data, *options):
    command = [BIN / "etude-torch", "suite", "run", "3d-face-recognition", "--data", data, "--threads", "1", *options]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)


def record(done, code):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


def resnet_50(channels, classes):
    """Returns the parameters: convolutions without bias, two numbers per channel for each norm, a linear layer."""
    total, inner = channels * 64 * 49 + 2 * 64, 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            total += inner * width + 9 * width * width + 4 * width * width + 2 * (width + width + 4 * width)
            total += inner * 4 * width + 2 * 4 * width if block == 0 else 0
            inner = 4 * width
    return total + (inner + 1) * classes


def test_paper_scale(tmp_path):
    write_scans(tmp_path)
    options = ("--scale", "paper", "--batch", 2, "--most-steps", 1, "--evaluate-every", 1, "--frozen", "--json")
    found = record(run(tmp_path, *options), 1)
    assert found["parameters"] == resnet_50(4, PEOPLE) == 24_029_565
    assert found["samples"] == 4 and found["baseline"] == 0.5
    assert [point["loss"] for point in found["curve"]] == pytest.approx([math.log(PEOPLE)], abs=1.5)
    assert set(found["figures"]) == {"with colour alone", "with depth alone"}


def test_scans_are_the_same_in_every_run(tmp_path):
    options = ("--most-steps", 1, "--evaluate-every", 1, "--json")
    found = [record(run(tmp_path, *options, "--seed", seed), 1) for seed in (1, 1, 2)]
    losses = [one["curve"][0]["loss"] for one in found]
    assert losses[0] == losses[1] != losses[2]
    assert [one["samples"] for one in found] == [1200] * 3
    assert [one["baseline"] for one in found] == [0.05] * 3


def depth_of(data):
    return data / "rgbd-faces/train/ann/0_depth.pgm"


@pytest.mark.parametrize(
    "depth, said",
    [
        (b"P2\n64 64\n255\n" + bytes(64 * 64), "0_depth.pgm: no binary PGM picture"),
        (b"P5\n64 64\n70000\n" + bytes(64 * 64), "0_depth.pgm: no binary PGM picture"),
        (b"P5\n64 64\n255\n" + bytes(64 * 63), "0_depth.pgm: 4032 bytes of pixels, expected 4096"),
        (b"P5\n64 64\n256\n" + bytes(64 * 64), "0_depth.pgm: 4096 bytes of pixels, expected 8192"),
        (b"P5\n64 32\n255\n" + bytes(64 * 32), "0_depth.pgm: 64 × 32 pixels, expected 64 × 64 as"),
    ],
)
def test_wrong_depth_is_named(tmp_path, depth, said):
    write_scans(tmp_path)
    depth_of(tmp_path).write_bytes(depth)
    done = run(tmp_path, "--scale", "paper", "--mode", "steps", "--warmup", 0, "--iterations", 1)
    assert done.returncode == 3, done.stderr
    assert said in done.stderr


def test_missing_depth(tmp_path):
    write_scans(tmp_path)
    depth_of(tmp_path).unlink()
    done = run(tmp_path, "--scale", "paper", "--mode", "steps", "--warmup", 0, "--iterations", 1)
    assert done.returncode == 5 and "0_depth.pgm" in done.stderr


def test_folders(tmp_path):
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 4 and "rgbd-faces/train" in done.stderr
    write_scans(tmp_path)
    (tmp_path / "rgbd-faces/test/ann").rename(tmp_path / "rgbd-faces/test/eve")
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3 and "train and test have other folders" in done.stderr
