"""The suite's language-modelling: both scales take a step; the published network's size; required contents of the
folder of documents."""

import json
import math
import os
import subprocess

import pytest
from paper_data import write_wikipedia

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude-torch")


def run(data, *options):
    command = [ETUDE, "suite", "run", "language-modelling", "--data", data, "--threads", "1", "--json", *options]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def record(done, code):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


def bert(vocabulary, width, hidden, layers, places):
    """Returns the parameters of BERT with its two heads. The matrix of words serves for inputs and outputs."""
    norm, square = 2 * width, width * width + width
    layer = 4 * square + 2 * width * hidden + hidden + width + 2 * norm
    embeddings = (vocabulary + places + 2) * width + norm
    heads = square + norm + vocabulary + square + 2 * width + 2
    return embeddings + layers * layer + heads


def test_the_formula_is_that_of_the_published_network():
    # 110,104,890 without the layer that predicts whether the second part follows.
    assert bert(30_522, 768, 3072, 12, 512) - (2 * 768 + 2) == 110_104_890


@pytest.fixture
def wikipedia(tmp_path):
    write_wikipedia(tmp_path)
    return tmp_path / "wikipedia"


def test_a_network_of_the_papers_size_learns_from_documents(tmp_path, wikipedia):
    trained = record(run(tmp_path, "--scale", "paper", "--batch", "2", "--most-steps", "1", "--target", "1"), 1)
    pieces = len((wikipedia / "vocab.txt").read_text().splitlines())
    assert trained["parameters"] == bert(pieces, 768, 3072, 12, 512)
    # Two documents of two sentences and one of three, whose last sentences begin no text. One document with one
    # sentence is left out.
    assert (trained["samples"], trained["data_set"]) == (4, "wikipedia")
    assert set(trained["figures"]) == {"next-sentence accuracy"}
    assert 0 <= trained["quality"] <= 1


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("train.txt", "one sentence\n\nanother one\n", "train.txt: no document of two sentences"),
        ("test.txt", "\n\n", "test.txt: no document of two sentences"),
        ("vocab.txt", "", "vocab.txt: empty, expected a piece of a word a line"),
        ("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n", "vocab.txt: no line [MASK], expected one"),
        ("vocab.txt", "[PAD]\nthe\nthe\n", "vocab.txt:3: found 'the', expected a piece of a word that no other line has"),
    ],
)
def test_documents_that_are_none(tmp_path, wikipedia, name, text, expected):
    (wikipedia / name).write_text(text)
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3
    assert expected in done.stderr


def test_documents_are_missing(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 4 and "package-texts: missing; `etude suite setup` makes it" in done.stderr
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 4 and "wikipedia: missing; expected train.txt" in done.stderr


def write_descriptions(data, count):
    (data / "package-texts").mkdir()
    for part, first in (("train", 0), ("test", count)):
        documents = [f"tool number {i % 7}\nthis tool reads a text\nand another sentence\n\n" for i in range(first, first + count)]
        (data / f"package-texts/{part}.txt").write_text("".join(documents))


def test_neighbours_say_what_words_are(tmp_path):
    """After each word comes the same one, except for the numbers: the baseline is high, and an untrained model
    guesses."""
    write_descriptions(tmp_path, 64)
    made = record(run(tmp_path, "--frozen", "--most-steps", "1"), 1)
    words = len("tool number this reads a text".split()) + 7
    assert made["parameters"] == bert(5 + words, 128, 512, 2, 20)
    assert made["samples"] == 22  # every third document
    assert 0.5 < made["baseline"] < 0.9
    (loss,) = (point["loss"] for point in made["curve"] if point["loss"] is not None)
    assert loss == pytest.approx(math.log(5 + words) + math.log(2), abs=0.7)


def test_masks_held_out_are_the_same_in_all_runs(tmp_path):
    write_descriptions(tmp_path, 64)
    one, other = (record(run(tmp_path, "--seed", seed, "--most-steps", "1"), 1) for seed in (1, 2))
    assert one["baseline"] == other["baseline"]
