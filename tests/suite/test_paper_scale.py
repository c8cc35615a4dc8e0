"""The published networks of image classification and spatial transformer: their size, a step on the CPU, their data's layout."""

import json
import os
import struct
import subprocess

import pytest
from paper_data import write_imagenet, write_mnist

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")


def step(task, data, *more):
    words = [ETUDE, "suite", "run", task, "--scale", "paper", "--mode", "steps", "--warmup", "0", "--iterations", "1"]
    words += ["--data", data, "--threads", "1", "--batch", "2", "--json", *more]
    return subprocess.run(list(map(str, words)), capture_output=True, text=True)


def record(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


@pytest.fixture
def imagenet(tmp_path):
    write_imagenet(tmp_path)
    return tmp_path


def test_resnet_50(imagenet):
    run = record(step("image-classification", imagenet))
    assert run["parameters"] == 25_557_032
    assert run["samples"] == 4 and run["target"] == 0.749 and run["target_origin"] == "found"


def test_a_damaged_picture(imagenet):
    for path in (imagenet / "imagenet/train").glob("*/*.JPEG"):
        path.write_bytes(path.read_bytes()[:100])
    done = step("image-classification", imagenet)
    assert done.returncode == 3
    assert ".JPEG" in done.stderr and "expected a JPEG image" in done.stderr


def test_without_imagenet(tmp_path):
    done = step("image-classification", tmp_path)
    assert done.returncode == 4 and "imagenet/train" in done.stderr
    (tmp_path / "imagenet/train").mkdir(parents=True)
    done = step("image-classification", tmp_path)
    assert done.returncode == 3 and "expected one folder per class" in done.stderr


def test_spatial_transformer(tmp_path):
    write_mnist(tmp_path)
    run = record(step("spatial-transformer", tmp_path))
    assert run["parameters"] == 27_360
    assert run["target_origin"] == "recalled"
    (tmp_path / "mnist/train-labels-idx1-ubyte").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, 4) + b"\1\2\3\x0b")
    done = step("spatial-transformer", tmp_path)
    assert done.returncode == 3 and "found label 11, expected 0 to 9" in done.stderr
