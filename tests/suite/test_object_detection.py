"""Object detection at paper scale: VOC's layout, the size of the network, a step on the CPU."""

import base64
import json
import math
import os
import pathlib
import struct
import subprocess
import tarfile

import pytest

BIN = pathlib.Path(os.environ["ETUDE_BIN"])
CELLS = pathlib.Path(os.environ.get("ETUDE_SHARED_DATA", "absent")) / "suite/bccd.tar.gz"

# 100 × 4 pixels, dark with a bright middle: as narrow as this the network sees 1000 × 40 of them, and not 1000 × 600.
PICTURE = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpR"
    "Uk//wAALCAAEAGQBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJx"
    "FDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZ"
    "mqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/AODoooor3uiuB+KH/ML/AO2v/slc"
    "FRRRRX//2Q=="
)
ANNOTATION = """<annotation>
  <size><width>100</width><height>4</height><depth>3</depth></size>
  <object><name>person</name><difficult>0</difficult>
    <bndbox><xmin>41</xmin><ymin>1</ymin><xmax>60</xmax><ymax>4</ymax></bndbox></object>
</annotation>
"""
PARAMETERS = 47_462_111


def run(data, *mode):
    """A run of one step at paper scale."""
    command = [BIN / "etude", "suite", "run", "object-detection", "--scale", "paper", "--batch", "1", "--json"]
    command += ["--data", data, "--mode", *mode]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)


def step(data):
    return run(data, "steps", "--warmup", "0", "--iterations", "1")


def record(done):
    """The record of the one run."""
    assert done.returncode in (0, 1), done.stderr  # 1: the target was missed
    (task,) = json.loads(done.stdout)["tasks"]
    return task["runs"][0]


def trunk():
    """Names and shapes of torchvision's ResNet-101, without what only its classifier has."""
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
    """A safetensors file; its zeros are a hole."""
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
    folder = tmp_path / "VOCdevkit/VOC2007"
    for part in ("ImageSets/Main", "Annotations", "JPEGImages"):
        (folder / part).mkdir(parents=True)
    for part, name in (("trainval", "000001"), ("test", "000002")):
        (folder / f"ImageSets/Main/{part}.txt").write_text(name + "\n")
        (folder / f"Annotations/{name}.xml").write_text(ANNOTATION)
        (folder / f"JPEGImages/{name}.jpg").write_bytes(PICTURE)
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
    assert str(picture) in done.stderr  # the trunk was taken, and the first step begun
    del shapes["layer3.22.bn3.weight"]
    write_zeros(file, shapes)
    done = step(data)
    assert done.returncode == 3
    assert f"{file}: no tensor 'layer3.22.bn3.weight'" in done.stderr


def test_damaged_files(data):
    folder = data / "VOCdevkit/VOC2007"
    picture = folder / "JPEGImages/000001.jpg"
    picture.write_bytes(PICTURE[:200])
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
    assert f"{tmp_path}/VOCdevkit/VOC2007: not there" in done.stderr


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
