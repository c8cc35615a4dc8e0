"""Object detection at paper scale: VOC's layout, the size of the network, a step on the CPU."""

import base64
import json
import os
import pathlib
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


def step(data, *more):
    """One step at paper scale."""
    command = [BIN / "etude", "suite", "run", "object-detection", "--scale", "paper", "--mode", "steps"]
    command += ["--warmup", "0", "--iterations", "1", "--batch", "1", "--data", data, "--json", *more]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)


def record(done):
    """The record of the one run."""
    assert done.returncode == 0, done.stderr
    (task,) = json.loads(done.stdout)["tasks"]
    return task["runs"][0]


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


def test_a_step(data):
    run = record(step(data))
    assert run["parameters"] == PARAMETERS
    assert run["samples"] == 1
    assert run["steps"] == 1


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
    assert f"{annotation}:5: found '</annotation>', expected '</size>'" in done.stderr


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
    run = record(step(tmp_path))
    assert run["parameters"] == PARAMETERS
    assert run["samples"] == 292
