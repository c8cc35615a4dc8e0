"""Video prediction: the paper's model on small files of robot pushing, and its baseline by formulas written out here."""

import json
import os
import pathlib
import random
import subprocess

import pytest
from paper_data import tf_example, tf_record, write_push
from pictures import block_jpeg, grey_jpeg

BIN = pathlib.Path(os.environ.get("ETUDE_BIN", "build/bin"))
TASK = "video-prediction"
FRAMES, SIDE = 10, 64


def run(data, *options):
    command = [BIN / "etude-torch", "suite", "run", TASK, "--data", data, "--threads", "1", *options]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)


def record(done, code):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


def parameters(side, width, repeated, kernel, moved, conditions, states):
    """Weights of all layers, with a bias for each channel unless a norm with its own scale and shift follows directly."""
    convolutions = 25 * 3 * width + (9 * width + 1) * width + (9 * 2 * width + 1) * 2 * width
    condition = (2 * width + conditions + 1) * 2 * width
    enlarging = sum((9 * n + bias) * n for n, bias in ((4 * width, 1), (3 * width, 1), (2 * width, 0)))
    sizes = [(width, width)] * repeated + [(width, 2 * width)] + [(2 * width, 2 * width)] * (repeated - 1)
    sizes += [(2 * width, 4 * width), (4 * width, 2 * width), (3 * width, width)]
    recurrent = sum((kernel**2 * (a + b) + 1) * 4 * b + 2 * b for a, b in sizes)
    norms = 2 * width + 2 * 2 * width
    answers = (2 * width + 1) * (3 + moved + 2) + (4 * width * (side // 8) ** 2 + 1) * 25 * moved
    return convolutions + condition + enlarging + recurrent + norms + answers + (conditions + 1) * states


PAPER = parameters(64, 32, 2, 5, 10, 10, 5)
STEP = ("--batch", 1, "--most-steps", 1, "--evaluate-every", 1, "--frozen", "--json")


def pictures(seed):
    """Ten frames of 80 × 64 blocks of 8 × 8 pixels."""
    draw = random.Random(seed)
    colours = [tuple(draw.randrange(256) for _ in range(3)) for _ in range(50)]
    return [[[draw.choice(colours) for _ in range(80)] for _ in range(64)] for _ in range(FRAMES)]


def copy_error(frames):
    """Of the second frame for all later ones: a pixel for each block of the middle square."""
    total = 0
    for frame in frames[2:]:
        for row, first in zip(frame, frames[1]):
            total += sum((a - b) ** 2 for one, other in zip(row[8:72], first[8:72]) for a, b in zip(one, other))
    return total / (255**2 * 3 * SIDE**2 * (FRAMES - 2))


def test_the_formula_gives_the_published_size():
    assert PAPER == 8_312_032


def test_paper_scale(tmp_path):
    """The last file is held out."""
    videos = [pictures(seed) for seed in (1, 2)]
    write_push(tmp_path, [[block_jpeg(frame) for frame in video] for video in videos])
    found = record(run(tmp_path, "--scale", "paper", *STEP), 0)
    assert found["parameters"] == PAPER and found["samples"] == 1
    assert found["baseline"] == pytest.approx(copy_error(videos[1]), rel=1e-5)
    psnr = [found["figures"][f"PSNR of frame {number}, dB"] for number in range(3, 11)]
    assert len(found["figures"]) == 8
    assert sum(10 ** (-one / 10) for one in psnr) / 8 == pytest.approx(found["quality"])


def test_videos_are_the_same_in_every_run(tmp_path):
    """A few steps are better than the last known frame."""
    first, again = [record(run(tmp_path, *STEP, "--seed", 1), 1) for _ in range(2)]
    learned = record(run(tmp_path, "--most-steps", 20, "--evaluate-every", 20, "--json", "--seed", 2), 1)
    assert first["curve"][0]["loss"] == again["curve"][0]["loss"] and first["quality"] == again["quality"]
    assert 0.01 < first["baseline"] == learned["baseline"] < 0.013
    assert learned["quality"] < 0.95 * learned["baseline"]
    assert first["samples"] == 1500 and first["parameters"] == parameters(32, 8, 1, 3, 6, 4, 2)


GOOD = {f"move/{time}/image/encoded": grey_jpeg(640, 512) for time in range(FRAMES)}
GOOD |= {f"move/{time}/commanded_pose/vec_pitch_yaw": [0.0] * 5 for time in range(FRAMES)}
GOOD |= {f"move/{time}/endeffector/vec_pitch_yaw": [0.0] * 5 for time in range(FRAMES)}


def without(feature):
    return {name: values for name, values in GOOD.items() if name != feature}


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "train-0: found no records, expected a TFRecord file"),
        (tf_record(b"\xff" * 20), "train-0: record 0: "),
        (without("move/9/image/encoded"), "record 0: found no strings 'move/9/image/encoded'"),
        (GOOD | {"move/9/image/encoded": [1.0]}, "record 0: found no strings 'move/9/image/encoded'"),
        (GOOD | {"move/3/image/encoded": b"GIF"}, "record 0: 'move/3/image/encoded': "),
        (GOOD | {"move/3/image/encoded": grey_jpeg(640, 512)[:-9]}, "expected a JPEG image"),
        (without("move/0/endeffector/vec_pitch_yaw"), "found no floats 'move/0/endeffector/vec_pitch_yaw'"),
        (GOOD | {"move/2/commanded_pose/vec_pitch_yaw": [1.0] * 4}, "found 4 floats 'move/2/commanded_pose/vec_pitch_yaw', expected 5"),
    ],
)
def test_wrong_files_are_named(tmp_path, content, said):
    write_push(tmp_path)
    path = tmp_path / "push/push_train/train-0"
    path.write_bytes(content if isinstance(content, bytes) else tf_record(tf_example(content)))
    done = run(tmp_path, "--scale", "paper", "--mode", "steps", "--warmup", 0, "--iterations", 1)
    assert done.returncode == 3, done.stderr
    assert said in done.stderr


def test_a_single_file_cannot_be_split(tmp_path):
    write_push(tmp_path)
    (tmp_path / "push/push_train/train-1").unlink()
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3 and "push_train: found 1 file, expected at least two TFRecord files" in done.stderr


def test_missing_folder(tmp_path):
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 4 and "push/push_train: missing" in done.stderr
