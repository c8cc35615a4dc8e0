"""The suite's text-to-text: both scales take a step; the published network's size; required contents of the folder
of sentence pairs."""

import json
import os
import subprocess

import pytest
from paper_data import write_en_de

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude-torch")


def run(data, *options):
    command = [ETUDE, "suite", "run", "text-to-text", "--data", data, "--threads", "1", "--json", *options]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def record(done, code):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


def transformer(vocabulary, width, hidden, layers):
    """Returns the parameters of a Transformer with one matrix of words."""
    attention = 4 * (width * width + width)
    linear = 2 * width * hidden + hidden + width
    encoder, decoder = attention + linear + 2 * 2 * width, 2 * attention + linear + 3 * 2 * width
    return layers * (encoder + decoder) + vocabulary * width


def test_the_formula_is_that_of_the_published_network():
    assert transformer(0, 512, 2048, 6) == 44_138_496
    assert transformer(37_000, 512, 2048, 6) == 63_082_496


@pytest.fixture
def en_de(tmp_path):
    write_en_de(tmp_path)
    return tmp_path / "en-de"


def test_a_network_of_the_papers_size_learns_from_pairs(tmp_path, en_de):
    trained = record(run(tmp_path, "--scale", "paper", "--most-steps", "1", "--target", "1"), 1)
    words = {word for name in ("train.en", "train.de") for word in (en_de / name).read_text().lower().split()}
    assert trained["parameters"] == transformer(4 + len(words), 512, 2048, 6)
    assert (trained["samples"], trained["batch"], trained["data_set"]) == (4, 4, "en-de")
    assert 0 <= trained["quality"] <= 1
    assert set(trained["figures"]) == {"BLEU"}
    # Of five held-out words and ends, the three after a German word follow from it. Each dictionary is as probable as
    # another one.
    assert trained["baseline"] == pytest.approx(3 / 5)


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("train.de", "ein hund\n", "train.de: found 1 lines, expected 4"),
        ("test.en", "", "test"),
        ("train.en", "\n\n\n\n", "train.en: no sentences, expected one a line"),
    ],
)
def test_pairs_that_are_none(tmp_path, en_de, name, text, expected):
    (en_de / name).write_text(text)
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3
    assert expected in done.stderr


def test_pairs_are_missing(tmp_path, en_de):
    (en_de / "test.de").unlink()
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode != 0 and "test.de" in done.stderr
    (en_de / "train.en").unlink()
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 4
    assert "en-de: missing; expected train.en" in done.stderr


def write_synopses(folder, pairs):
    folder.mkdir()
    for part in ("train", "test"):
        for language, texts in zip(("en", "de"), zip(*pairs)):
            (folder / f"{part}.{language}").write_text("".join(text + "\n" for text in texts))


def test_known_words_count_and_ends(tmp_path):
    """Words that occur once in training are unknown: only "bibliothek" and ends are evaluated."""
    pairs = [("library", "Bibliothek")] * 40 + [(f"x{i} library", f"Bibliothek y{i}") for i in range(40)]
    write_synopses(tmp_path / "package-texts", pairs)
    made = record(run(tmp_path, "--batch", "8", "--most-steps", "1", "--target", "1"), 1)
    assert (made["samples"], made["data_set"]) == (80, "package-texts")
    # Of 160: all words and, after words, ends; after unknown words the end is the most frequent too.
    assert made["baseline"] == 1
    assert made["parameters"] == transformer(4 + 2, 128, 512, 2)


def test_sentences_are_made_where_there_are_none(tmp_path):
    one, other = (record(run(tmp_path, "--seed", seed, "--most-steps", "1", "--batch", "8"), 1) for seed in (1, 2))
    assert one["data_set"] == "generated" and one["samples"] == 4_000
    assert one["baseline"] == other["baseline"]
    assert 0.2 < one["baseline"] < 0.7
    assert one["curve"][0]["loss"] != other["curve"][0]["loss"]


def test_a_model_that_knows_nothing(tmp_path):
    """Its loss is at least that of guessing, the logarithm of the number of words."""
    done = run(tmp_path, "--frozen", "--most-steps", "1", "--batch", "64")
    loss = [point["loss"] for point in record(done, 1)["curve"] if point["loss"] is not None]
    assert len(loss) == 1 and 4 < loss[0] < 10
