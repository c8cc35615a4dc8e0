"""Object detection at paper scale: VOC's layout, the size of the network, a step on the CPU."""

import json
import math
import os
import pathlib
import struct
import subprocess
import tarfile

import pytest
from paper_data import VOC_ANNOTATION as ANNOTATION
from paper_data import VOC_PICTURE as PICTURE
from paper_data import write_voc

BIN = pathlib.Path(os.environ["ETUDE_BIN"])
CELLS = pathlib.Path(os.environ.get("ETUDE_SHARED_DATA", "absent")) / "suite/bccd.tar.gz"

PARAMETERS = 47_462_111


def run(data, *mode):
    """Runs one step at paper scale."""
    command = [BIN / "etude", "suite", "run", "object-detection", "--scale", "paper", "--batch", "1", "--json"]
    command += ["--data", data, "--mode", *mode]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)


def step(data):
    return run(data, "steps", "--warmup", "0", "--iterations", "1")


def record(done):
    """Returns the record of this run."""
    assert done.returncode in (0, 1), done.stderr  # 1: the target was missed
    (task,) = json.loads(done.stdout)["tasks"]
    return task["runs"][0]


def trunk():
    """Returns names and shapes of torchvision's ResNet-101, without the parts for its classifier."""
    shapes = {}

    def convolution(name, norm, out, inner, kernel):
        shapes[f"{name}.weight"] = [out, inner, kernel, kernel]
        for part in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{norm}.{part}"] = [out]

    convolution("conv1", "bn1", 64, 3, 7)
    inner = 64
    for stage, blocks in enumerate([3, 4, 23, 3]):
        width = 64 << stage
        for block in range(blocks):
            name = f"layer{stage + 1}.{block}"
            convolution(f"{name}.conv1", f"{name}.bn1", width, inner, 1)
            convolution(f"{name}.conv2", f"{name}.bn2", width, width, 3)
            convolution(f"{name}.conv3", f"{name}.bn3", 4 * width, width, 1)
            if block == 0:
                convolution(f"{name}.downsample.0", f"{name}.downsample.1", 4 * width, inner, 1)
            inner = 4 * width
    return shapes


def write_zeros(path, shapes):
    """Writes a safetensors file whose zeros are a hole."""
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)


@pytest.fixture
def data(tmp_path):
    write_voc(tmp_path)
    return tmp_path


def test_a_step_and_an_evaluation(data):
    got = record(run(data, "quality", "--most-steps", "1"))
    assert got["parameters"] == PARAMETERS
    assert (got["samples"], got["steps"]) == (1, 1)
    assert 0 <= got["quality"] <= 1
    assert got["baseline"] == 1  # both pictures have one object, at the same place


def test_a_trunk_from_a_file(data):
    file = data / "resnet101.safetensors"
    picture = data / "VOCdevkit/VOC2007/JPEGImages/000001.jpg"
    picture.write_bytes(b"")
    shapes = trunk()
    write_zeros(file, shapes)
    done = step(data)
    assert done.returncode == 3
    assert str(picture) in done.stderr  # the trunk was loaded, and the first step has begun
    del shapes["layer3.22.bn3.weight"]
    write_zeros(file, shapes)
    done = step(data)
    assert done.returncode == 3
    assert f"{file}: no tensor 'layer3.22.bn3.weight'" in done.stderr


def test_damaged_files(data):
    folder = data / "VOCdevkit/VOC2007"
    picture = folder / "JPEGImages/000001.jpg"
    picture.write_bytes(PICTURE[: len(PICTURE) // 2])
    done = step(data)
    assert done.returncode == 3
    assert str(picture) in done.stderr
    annotation = folder / "Annotations/000002.xml"
    annotation.write_text(ANNOTATION.replace("</size>", ""))
    done = step(data)
    assert done.returncode == 3
    assert f"{annotation}:5: mismatched tag, expected '</size>'" in done.stderr


def test_absent(tmp_path):
    done = step(tmp_path)
    assert done.returncode == 4
    assert f"{tmp_path}/VOCdevkit/VOC2007: missing" in done.stderr


def test_blood_cells(tmp_path):
    if not CELLS.exists():
        pytest.skip(f"no blood cells at {CELLS}")
    (tmp_path / "VOCdevkit").mkdir()
    with tarfile.open(CELLS) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "BCCD").rename(tmp_path / "VOCdevkit/VOC2007")
    got = record(step(tmp_path))
    assert got["parameters"] == PARAMETERS
    assert (got["samples"], got["steps"]) == (292, 1)
