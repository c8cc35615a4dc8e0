"""The suite's architecture-search: the published network's size, its baseline by a formula written out here, cells that
remember more than the word before, wrong files."""

import collections
import json
import math
import os
import re
import subprocess

import pytest
from paper_data import ptb_text, write_ptb

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude-torch")
TASK = "architecture-search"


def run(data, *options):
    command = [ETUDE, "suite", "run", TASK, "--data", data, "--threads", "1", "--json", *options]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def record(done, code):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


def cells(words, width, nodes):
    """Two matrices for each pair of nodes: of the gate, and of what passes it. The matrix of words serves for inputs and
    outputs."""
    pairs = nodes * (nodes - 1) // 2
    first = 2 * (width * width + width) + 2 * width * width
    return words * width + words + first + pairs * 2 * width * width + 2 * width


def controller(nodes, hidden):
    """Choices to read, an LSTM, and a layer for each choice: of one of four activations, and of an earlier node."""
    choices = [4] * nodes + list(range(1, nodes))
    return (1 + 4 + nodes - 1) * hidden + 4 * hidden * (2 * hidden + 2) + sum(count * (hidden + 1) for count in choices)


def test_the_formula_is_that_of_the_published_network():
    # A found cell uses one pair of matrices for each node but the first.
    assert cells(10_000, 1000, 12) == 146_014_000
    assert cells(10_000, 1000, 12) - 55 * 2 * 1000**2 == 36_014_000
    assert controller(12, 100) == 93_914


def test_a_network_of_the_papers_size_takes_a_step(tmp_path):
    write_ptb(tmp_path)
    made = record(run(tmp_path, "--scale", "paper", "--batch", 2, "--mode", "steps", "--warmup", 0, "--iterations", 1), 0)
    # Twelve words, one of which is "<unk>", and the end of a line.
    words = len(set(ptb_text(16).split()))
    assert made["parameters"] == cells(1 + words, 1000, 12) + controller(12, 100)
    assert (made["samples"], made["data_set"]) == (3, "ptb")


def line(number, length=6):
    """A line that begins with one of two words; all others but the last are alike."""
    kind = (number * number + number // 3) % 2
    return " ".join(["red" if kind else "blue", *["and"] * length, "rose" if kind else "sky"])


def write_synopses(data, train=600, test=400):
    (data / "package-texts").mkdir()
    for part, count in (("train", train), ("test", test)):
        text = "".join(line(i // 3 if part == "train" else i, 2) + "\n" for i in range(count))
        (data / f"package-texts/{part}.title.txt").write_text(text)


def stream(lines):
    return [word for one in lines for word in (*one.split(), "end")]


def bigram_perplexity(train, test, words):
    """By Witten and Bell's smoothing (1991)."""
    counts, after = collections.Counter(train), collections.defaultdict(collections.Counter)
    for before, word in zip(train, train[1:]):
        after[before][word] += 1

    def probability(before, word):
        frequency = (counts[word] + 1) / (len(train) + words)
        different = len(after[before])
        return (after[before][word] + different * frequency) / (after[before].total() + different)

    return math.exp(-sum(math.log(probability(*pair)) for pair in zip(test, test[1:])) / (len(test) - 1))


def test_cells_remember_more_than_the_word_before(tmp_path):
    """What a line begins with says how it ends. With the next words of other positions, there is nothing to learn."""
    write_synopses(tmp_path)
    options = ("--most-steps", 40, "--evaluate-every", 40, "--target", 1)
    trained, shuffled = (record(run(tmp_path, *options, *more), 1) for more in ((), ("--shuffled-labels",)))
    words = 2 + len("red blue and rose sky".split())
    train = stream(line(i, 2) for i in range(200))
    test = stream(line(i, 2) for i in range(400) if i // 100 % 2 == 1)
    assert trained["baseline"] == shuffled["baseline"] == pytest.approx(bigram_perplexity(train, test, words))
    assert trained["quality"] < 0.95 * trained["baseline"]
    assert shuffled["quality"] > 1.5 * shuffled["baseline"]
    assert trained["parameters"] == cells(words, 64, 4) + controller(4, 32)
    assert trained["samples"] == (len(train) - 1) // 20


def test_figures(tmp_path):
    write_synopses(tmp_path)
    made = record(run(tmp_path, "--frozen", "--most-steps", 1, "--target", 1), 1)
    figures = made["figures"]
    assert set(figures) == {"random cells", "random search", "controller entropy", "best cell"}
    activation = "(tanh|relu|identity|sigmoid)"
    assert re.fullmatch(f"1 {activation}; 2 {activation} of 1; 3 {activation} of [12]; 4 {activation} of [123]", figures["best cell"])
    # Four activations, and one of two and of three nodes. A controller that has not learned chooses nearly alike.
    assert figures["controller entropy"] == pytest.approx(4 * math.log(4) + math.log(2) + math.log(3), abs=0.2)
    assert figures["random search"] > 3 and figures["random cells"] > 3


def test_a_run_depends_on_its_seed_only(tmp_path):
    write_synopses(tmp_path)
    one, same, other = (record(run(tmp_path, "--most-steps", 2, "--target", 1, "--seed", seed), 1) for seed in (1, 1, 2))
    assert (one["quality"], one["figures"]) == (same["quality"], same["figures"])
    assert one["quality"] != other["quality"]
    assert one["baseline"] == other["baseline"]


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("train", "", "ptb.train.txt: no words, expected a sentence a line"),
        ("valid", " \n\n", "ptb.valid.txt: no words, expected a sentence a line"),
        ("test", "the fund\n", "ptb.test.txt: found 3 words and ends of lines, expected more than 35"),
        ("valid", "the fund\n", "ptb.valid.txt: found 3 words and ends of lines, expected more than 35"),
    ],
)
def test_wrong_files_are_named(tmp_path, name, text, said):
    write_ptb(tmp_path)
    (tmp_path / f"ptb/ptb.{name}.txt").write_text(text)
    done = run(tmp_path, "--scale", "paper", "--most-steps", 1)
    assert done.returncode == 3, done.stderr
    assert said in done.stderr


def test_too_many_words_are_no_vocabulary(tmp_path):
    write_ptb(tmp_path)
    (tmp_path / "ptb/ptb.train.txt").write_text(" ".join(map(str, range(100_000))))
    done = run(tmp_path, "--scale", "paper", "--most-steps", 1)
    assert done.returncode == 3, done.stderr
    assert "ptb.train.txt: found 100002 different words, expected at most 100000" in done.stderr


def test_missing_files(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 4 and "package-texts: missing; `etude suite setup` makes it" in done.stderr
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 4 and "ptb: missing; expected the Penn Treebank: ptb.train.txt" in done.stderr
