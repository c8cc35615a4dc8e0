"""The suite's image-to-text: both scales take a step; required contents of COCO's folder."""

import json
import os
import subprocess

import pytest
from paper_data import write_coco

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude-torch")
TRUNK = 21_785_568  # Inception-v3 without its classifiers
LSTM = 1_665_024  # of width 512, over 299 features


def run(tmp_path, *options):
    command = [ETUDE, "suite", "run", "image-to-text", "--data", tmp_path, "--threads", "1", "--json", *options]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def record(done, code):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


@pytest.fixture
def coco(tmp_path):
    write_coco(tmp_path)
    return tmp_path / "coco"


def test_a_network_of_the_papers_size_learns_from_coco(tmp_path, coco):
    done = run(tmp_path, "--scale", "paper", "--most-steps", "1")
    missed = record(done, 1)
    assert "inception_v3.safetensors: missing pretrained weights" in done.stderr
    words = 3 + 3  # with start, end and unknown
    assert missed["parameters"] == TRUNK + (2048 + 1) * 299 + 2 * 299 + LSTM + words * (299 + 512 + 1)
    assert missed["samples"] == 4 and missed["batch"] == 4
    # Of 17 words and ends each of the vocabulary's five is counted once more: a, cat, . and the end 5, unknown 2.
    held_out = [5, 2, 5, 5, 5, 5, 5]
    product = 1
    for count in held_out:
        product *= 22 / count
    assert missed["baseline"] == pytest.approx(product ** (1 / len(held_out)))
    assert 1 < missed["quality"] < 100


def test_a_trunk_that_is_none(tmp_path, coco):
    (coco / "inception_v3.safetensors").write_bytes(b"no")
    done = run(tmp_path, "--scale", "paper", "--mode", "steps", "--warmup", "0", "--iterations", "1")
    assert done.returncode == 3
    assert "inception_v3.safetensors: 2 bytes, expected a checkpoint" in done.stderr


@pytest.mark.parametrize(
    "change, place, expected",
    [
        (lambda data: data.pop("annotations"), "captions_val2014.json", "no captions"),
        (lambda data: data.update(images=3), "captions_val2014.json.images", "a list"),
        (lambda data: data["images"][1].update(id=7), "images[1].id", "a unique value"),
        (lambda data: data["images"][1].update(file_name="../x.jpg"), "images[1].file_name", "file name of an image"),
        (lambda data: data["annotations"][1].update(image_id=5), "annotations[1].image_id", "one of the images"),
        (lambda data: data["annotations"][0].update(caption=None), "annotations[0].caption", "a sentence"),
        (lambda data: data["annotations"][0].update(caption="a " * 3000), "annotations[0].caption", "4096 bytes"),
    ],
)
def test_captions_that_are_none(tmp_path, coco, change, place, expected):
    path = coco / "annotations/captions_val2014.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3
    assert place in done.stderr and expected in done.stderr


def test_text_that_is_no_json(tmp_path, coco):
    (coco / "annotations/captions_train2014.json").write_text("{")
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3
    assert "captions_train2014.json: not valid JSON, expected captions of COCO" in done.stderr


def test_a_picture_that_is_none(tmp_path, coco):
    for path in (coco / "train2014").iterdir():
        path.write_bytes(b"GIF89a")
    done = run(tmp_path, "--scale", "paper", "--most-steps", "1")
    assert done.returncode == 3
    assert ".jpg" in done.stderr and "expected a JPEG image" in done.stderr


def test_coco_is_not_there(tmp_path):
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 4
    assert "coco: missing; expected MS COCO 2014" in done.stderr


def test_scenes_need_no_files_and_are_the_same_in_all_runs(tmp_path):
    one, other = (record(run(tmp_path, "--seed", seed, "--most-steps", "2", "--batch", "8"), 1) for seed in (1, 2))
    assert one["baseline"] == other["baseline"]
    assert one["baseline"] > 8
    assert one["quality"] != other["quality"]
    assert one["samples"] == 16_000
