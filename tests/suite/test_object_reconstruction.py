"""3D object reconstruction: the paper's model on a small file of chairs, its silhouettes and its metric by formulas written out here."""

import gzip
import json
import math
import os
import pathlib
import struct
import subprocess

import pytest
from paper_data import tf_example, tf_record, write_shapenet

BIN = pathlib.Path(os.environ.get("ETUDE_BIN", "build/bin"))
SIDE = 32
TASK = "3d-object-reconstruction"


def run(data, *options):
    command = [BIN / "etude-torch", "suite", "run", TASK, "--data", data, "--threads", "1", *options]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)


def record(done, code):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


def parameters(colours, side, filters, hidden, code, channels, kernels):
    """Each layer has a weight for each pair of channels at each place of its kernel, and a bias for each channel."""
    widths = (colours, filters, 2 * filters, 4 * filters)
    sizes = (4 * filters * (side // 8) ** 2, hidden, hidden, code, channels[0] * 4**3)
    return (
        sum((25 * a + 1) * b for a, b in zip(widths, widths[1:]))
        + sum((a + 1) * b for a, b in zip(sizes, sizes[1:]))
        + sum((k**3 * a + 1) * b for k, a, b in zip(kernels, channels, channels[1:]))
    )


PAPER = parameters(3, 64, 64, 1024, 512, (512, 256, 96, 1), (4, 5, 6))
FROZEN = ("--scale", "paper", "--batch", 1, "--most-steps", 1, "--evaluate-every", 1, "--frozen", "--json")


FULL = 1.5  # more than 1, so that a silhouette differs more from one half than what is beside it


def block(y, x, z):
    """A volume [y, x, z] that is full within three ranges."""
    return [FULL * (i in y and j in x and k in z) for i in range(SIDE) for j in range(SIDE) for k in range(SIDE)]


def iou(answer, volume):
    answer, volume = ([value >= 0.5 for value in values] for values in (answer, volume))
    either = sum(a or b for a, b in zip(answer, volume))
    return sum(a and b for a, b in zip(answer, volume)) / either


def interpolated(values, place):
    """Of values from -1 to 1, in the middles of equal parts, and 0 beyond them."""
    at = (place + 1) * len(values) / 2 - 0.5
    left = math.floor(at)
    return sum(values[i] * (1 - abs(at - i)) for i in (left, left + 1) if 0 <= i < len(values))


def loss_of_knowing_nothing(y, x, z):
    """Of one half everywhere, for a block: rays from 24 cameras at 30°, 1.732 from the middle, that see 0.866 before and behind it."""
    line = [2 * i / (SIDE - 1) - 1 for i in range(SIDE)]
    full = [[float(i in part) for i in range(SIDE)] for part in (x, y, z)]
    whole = [[1.0] * SIDE] * 3
    sine, cosine = 0.5, math.sqrt(0.75)
    total = 0
    for view in range(24):
        azimuth = 2 * math.pi * view / 24
        a, b = math.cos(azimuth), math.sin(azimuth)
        for up in line:
            for right in line:
                true, answer = 0, 0
                for depth in line:
                    far = 1.732 + 0.866 * depth
                    along, u, r = far - 1.732, up * far / 0.866, right * far / 0.866
                    point = (
                        along * a * cosine + u * a * sine + r * b,
                        -along * sine + u * cosine,
                        -along * b * cosine - u * b * sine + r * a,
                    )
                    if max(map(abs, point)) > 1 + 1 / SIDE:
                        continue
                    true = max(true, FULL * math.prod(map(interpolated, full, point)))
                    answer = max(answer, math.prod(map(interpolated, whole, point)) / 2)
                total += (true - answer) ** 2
    return 10 * total / 2 / 24


def test_the_formula_gives_the_published_size():
    assert PAPER == 47_673_569


def test_paper_scale(tmp_path):
    """The mean shape is cut off where that is best for the volumes learned."""
    parts = [(range(18, 32), range(4, 20), range(10, 30)), (range(10, 30), range(4, 20), range(10, 32))]
    learned = [block(*part) for part in parts]
    held_out = block(range(16, 30), range(4, 20), range(10, 30))
    write_shapenet(tmp_path, {"train": learned, "val": [held_out]})
    found = record(run(tmp_path, *FROZEN), 1)
    assert found["parameters"] == PAPER and found["samples"] == 2
    # Of one sample, either of both.
    losses = [loss_of_knowing_nothing(*part) for part in parts]
    assert min(abs(found["curve"][0]["loss"] / loss - 1) for loss in losses) < 0.01
    assert abs(losses[0] / losses[1] - 1) > 0.03
    shares = [sum(values) / len(learned) for values in zip(*learned)]
    shapes = [[float(share >= i / 20) for share in shares] for i in range(1, 20)]
    best = max(shapes, key=lambda shape: sum(iou(shape, volume) for volume in learned))
    assert found["baseline"] == pytest.approx(iou(best, held_out))
    # All pictures are black and show the same volume, so it is one answer 24 times.
    assert found["figures"]["IoU of all volumes together"] == pytest.approx(found["quality"])


def test_solids_are_the_same_in_every_run(tmp_path):
    options = ("--most-steps", 1, "--evaluate-every", 1, "--json")
    found = [record(run(tmp_path, *options, "--seed", seed), 1) for seed in (1, 1, 2)]
    losses = [one["curve"][0]["loss"] for one in found]
    assert losses[0] == losses[1] != losses[2]
    assert [one["samples"] for one in found] == [1200] * 3
    assert found[0]["baseline"] == found[2]["baseline"] < 0.4
    assert found[0]["parameters"] == parameters(1, 32, 16, 128, 64, (48, 24, 1), (4, 4))


def flipped(data):
    return data[:200] + bytes([data[200] ^ 1]) + data[201:]


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda data: b"", "03001627_train.tfrecords: found no records"),
        (lambda data: data[:7], "byte 0: ends within a record"),
        (lambda data: data[:-1], "byte 0: ends within a record"),
        (lambda data: b"\0" + data, "byte 0: wrong checksum of a record's length, expected a TFRecord file"),
        (lambda data: struct.pack("<Q", 1 << 62) + tf_record(b"")[8:], "wrong checksum of a record's length"),
        (flipped, "record 0: wrong checksum"),
        (gzip.compress, "compressed, expected an uncompressed TFRecord file"),
        (lambda data: tf_record(b"\xff" * 20), "record 0: "),
        (lambda data: tf_record(tf_example({"vox": [0.0] * SIDE**3})), "record 0: found no floats 'image'"),
        (lambda data: tf_record(tf_example({"image": [0.0] * 12})), "record 0: found 12 floats 'image', expected 294912"),
    ],
)
def test_wrong_files_are_named(tmp_path, change, said):
    empty = [0.0] * SIDE**3
    write_shapenet(tmp_path, {"train": [empty], "val": [empty]})
    path = tmp_path / "shapenet/03001627_train.tfrecords"
    path.write_bytes(change(path.read_bytes()))
    done = run(tmp_path, "--scale", "paper", "--mode", "steps", "--warmup", 0, "--iterations", 1)
    assert done.returncode == 3, done.stderr
    assert said in done.stderr


def test_missing_files(tmp_path):
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 4 and "shapenet/03001627_train.tfrecords: missing" in done.stderr
