"""Image to image: the paper's networks on a small folder of pairs, its measures against a reference, and wrong files."""

import json
import os
import pathlib
import subprocess

import pytest
from paper_data import write_cityscapes
from pictures import block_jpeg, grey_jpeg

BIN = pathlib.Path(os.environ.get("ETUDE_BIN", "build/bin"))

# Cityscapes' colours of its nineteen classes, and black for none.
COLOURS = [(128, 64, 128), (244, 35, 232), (70, 70, 70), (102, 102, 156), (190, 153, 153), (153, 153, 153), (250, 170, 30),
           (220, 220, 0), (107, 142, 35), (152, 251, 152), (70, 130, 180), (220, 20, 60), (255, 0, 0), (0, 0, 142), (0, 0, 70),
           (0, 60, 100), (0, 80, 100), (0, 0, 230), (119, 11, 32), (0, 0, 0)]  # fmt: skip


def run(data, *options):
    command = [BIN / "etude-torch", "suite", "run", "image-to-image", "--data", data, "--threads", "1", *options]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)


def record(done, code=1):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


def translator(width, halvings, blocks):
    """Parameters: convolutions with biases; the norms have none."""
    total, wide = 2 * 3 * width * 49 + width + 3, width
    for _ in range(halvings):
        total += 2 * 9 * wide * 2 * wide + 2 * wide + wide
        wide *= 2
    return total + blocks * 2 * (9 * wide * wide + wide)


def critic(width, halvings):
    total, inner = 0, 3
    for i in range(halvings + 1):
        out = width << i
        total, inner = total + 16 * inner * out + out, out
    return total + 16 * inner + 1


def paper_run(data, *options):
    return run(data, "--scale", "paper", "--most-steps", 1, "--evaluate-every", 1, "--frozen", "--json", *options)


def test_paper_scale(tmp_path):
    write_cityscapes(tmp_path)
    found = record(paper_run(tmp_path), 0)
    assert found["parameters"] == 2 * (translator(64, 2, 9) + critic(64, 3)) == 28_285_832
    assert found["samples"] == 3 and found["target"] is None
    # All pictures are of one grey, which is nearest to the poles' colour.
    assert found["baseline"] == found["figures"]["nearest colours of the photo"] == 1
    assert 0 <= found["quality"] <= 1


def nearest(colour):
    return min(range(len(COLOURS)), key=lambda kind: sum((a - b) ** 2 for a, b in zip(colour, COLOURS[kind])))


def test_shares_of_pixels_are_those_of_a_reference(tmp_path):
    """In the photograph's own colours, which are measured as translated ones are."""
    write_cityscapes(tmp_path)
    side = 6  # blocks, 48 pixels, as many as the photographs to learn from have
    photos, maps = [], []
    for pair in range(2):
        photos.append([[(40 * x, 45 * y, (90 * pair + 35 * x * y) % 256) for x in range(side)] for y in range(side)])
        kinds = [[19 if (x + y) % 5 == 0 else (x // 2 + y * pair) % 19 for x in range(side)] for y in range(side)]
        # A little off the classes' colours, as after compression.
        maps.append([[tuple(min(255, part + 3) for part in COLOURS[kind]) for kind in row] for row in kinds])
        (tmp_path / f"cityscapes/testA/{pair}_A.jpg").write_bytes(block_jpeg(photos[pair]))
        (tmp_path / f"cityscapes/testB/{pair}_B.jpg").write_bytes(block_jpeg(maps[pair]))
    truth = [nearest(colour) for picture in maps for row in picture for colour in row]
    answers = [nearest(colour) for picture in photos for row in picture for colour in row]
    counted = [(right, answer) for right, answer in zip(truth, answers) if right != 19]
    right = sum(a == b for a, b in counted) / len(counted)
    most = max(sum(a == kind for a, _ in counted) for kind in range(19)) / len(counted)
    assert 0 < right < 0.5 and right != most and len(counted) < len(truth)

    found = record(paper_run(tmp_path), 0)
    assert found["figures"]["nearest colours of the photo"] == pytest.approx(right, abs=1e-9)
    assert found["baseline"] == pytest.approx(most, abs=1e-9)
    assert 0 <= found["figures"]["class IoU"] <= found["figures"]["class accuracy"] <= 1


def test_translators_that_know_nothing(tmp_path):
    options = ("--most-steps", 1, "--frozen", "--json")
    found = [record(run(tmp_path, *options, "--seed", seed)) for seed in (1, 1, 2)]
    assert found[0]["parameters"] == 2 * (translator(8, 1, 2) + critic(8, 2))
    assert [one["samples"] for one in found] == [600] * 3
    losses = [one["curve"][0]["loss"] for one in found]
    assert losses[0] == losses[1] != losses[2]
    # The road is the most frequent class; the scenes are the same in all runs.
    assert 0.4 < found[0]["baseline"] == found[2]["baseline"] < 0.5
    assert found[0]["quality"] < 0.6


def test_translators_learn(tmp_path):
    found = record(run(tmp_path, "--most-steps", 48, "--evaluate-every", 8, "--target", 1, "--json"))
    assert found["quality"] > max(0.7, found["baseline"] + 0.2)
    shuffled = record(run(tmp_path, "--most-steps", 24, "--evaluate-every", 8, "--target", 1, "--shuffled-labels", "--json"))
    assert shuffled["quality"] < 0.65


def test_a_map_is_missing(tmp_path):
    write_cityscapes(tmp_path)
    (tmp_path / "cityscapes/testB/1_B.jpg").unlink()
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3 and "testB/1_B.jpg: missing; it is the label map of" in done.stderr


def test_another_name(tmp_path):
    write_cityscapes(tmp_path)
    (tmp_path / "cityscapes/testA/1_A.jpg").rename(tmp_path / "cityscapes/testA/one.jpg")
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3 and "found 'one.jpg', expected a name that ends with _A.jpg" in done.stderr


def test_folders(tmp_path):
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 4 and "cityscapes/trainA" in done.stderr
    write_cityscapes(tmp_path)
    for file in (tmp_path / "cityscapes/trainB").iterdir():
        file.unlink()
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3 and "cityscapes/trainB: found no images" in done.stderr


def test_small_photographs(tmp_path):
    write_cityscapes(tmp_path)
    (tmp_path / "cityscapes/trainA/0_A.jpg").write_bytes(grey_jpeg(64, 31))
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3 and "0_A.jpg: found 64 × 31 pixels, expected at least 32 × 32" in done.stderr


def test_a_damaged_picture(tmp_path):
    write_cityscapes(tmp_path)
    (tmp_path / "cityscapes/trainB/0_B.jpg").write_bytes(grey_jpeg(64)[:40])
    (tmp_path / "cityscapes/trainB/1_B.jpg").unlink()
    done = run(tmp_path, "--scale", "paper", "--mode", "steps", "--warmup", 0, "--iterations", 1)
    assert done.returncode == 3 and "trainB/0_B.jpg" in done.stderr
