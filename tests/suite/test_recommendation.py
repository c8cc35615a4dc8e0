"""Recommendation: the paper's model on ratings in MovieLens's layout, and messages for wrong files."""

import json
import math
import os
import pathlib
import subprocess

import pytest
from paper_data import write_movielens

BIN = pathlib.Path(os.environ.get("ETUDE_BIN", "build/bin"))
USERS, ITEMS = 6, 40


def parameters(users, items, factors=64, widths=(256, 256, 128, 64)):
    embeddings = (users + items) * (factors + widths[0] // 2)
    layers = sum(a * b + b for a, b in zip(widths, widths[1:]))
    return embeddings + layers + factors + widths[-1] + 1


def run(data, *options):
    command = [BIN / "etude-torch", "suite", "run", "recommendation", "--data", data, "--threads", "1", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def movielens(tmp_path):
    write_movielens(tmp_path, USERS, ITEMS)
    return tmp_path


def test_the_formula_gives_the_published_size():
    assert parameters(138_493, 26_744) == 31_832_577


def test_paper_scale(movielens):
    done = run(movielens, "--scale", "paper", "--most-steps", "3", "--target", "1", "--json")
    assert done.returncode == 1, done.stderr
    (record,) = json.loads(done.stdout)["tasks"][0]["runs"]
    items = len({line.split(",")[1] for line in (movielens / "ml-20m/ratings.csv").read_text().splitlines()[1:]})
    assert record["parameters"] == parameters(USERS, items)
    assert record["samples"] == USERS * 11  # one of twelve is held out
    assert 0 <= record["quality"] <= 1 and 0 <= record["baseline"] <= 1
    # With a hit at rank r, HR counts 1 and NDCG 1 / log2(r + 2).
    assert record["figures"]["NDCG@10"] <= record["quality"]


def test_a_model_that_knows_nothing_loses_ln_2(movielens):
    done = run(movielens, "--scale", "paper", "--most-steps", "2", "--frozen", "--json")
    (record,) = json.loads(done.stdout)["tasks"][0]["runs"]
    assert record["curve"][0]["loss"] == pytest.approx(math.log(2), abs=0.05)


def test_the_last_by_time_is_held_out(tmp_path):
    """Everyone's last film is the same, and nobody has it elsewhere. Popularity never names it, and it ranks below
    30 others."""
    lines = ["userId,movieId,rating,timestamp"]
    for user in range(8):
        lines.append(f"{user},999,5.0,2000")  # first in the file, last by time
        lines += [f"{user},{film},4.0,{1000 + film}" for film in range(user, user + 30)]
    (tmp_path / "ml-20m").mkdir()
    (tmp_path / "ml-20m/ratings.csv").write_text("\n".join(lines) + "\n")
    done = run(tmp_path, "--scale", "paper", "--most-steps", "1", "--json")
    (record,) = json.loads(done.stdout)["tasks"][0]["runs"]
    assert record["samples"] == 8 * 30
    # 37 films, 30 of them known to each user: 7 others and the held-out one, which is always among the best ten.
    assert record["baseline"] == 1


@pytest.mark.parametrize(
    "text, said",
    [
        ("user,movie\n1,2\n", "ratings.csv:1: found 'user,movie', expected 'userId,movieId,rating,timestamp'"),
        ("userId,movieId,rating,timestamp\n1,2,3.0\n", "ratings.csv:2: found '1,2,3.0'"),
        ("userId,movieId,rating,timestamp\n1,2,3.0,now\n", "ratings.csv:2: found '1,2,3.0,now'"),
        ("userId,movieId,rating,timestamp\n", "ratings.csv: no ratings"),
        ("userId,movieId,rating,timestamp\n1,2,3.0,4\n", "no user has chosen three items"),
    ],
)
def test_wrong_lines_are_named(movielens, text, said):
    (movielens / "ml-20m/ratings.csv").write_text(text)
    done = run(movielens, "--scale", "paper")
    assert done.returncode == 3, done.stderr
    assert said in done.stderr


@pytest.mark.parametrize("scale, path", [("smoke", "nycflights"), ("paper", "ml-20m/ratings.csv")])
def test_missing_data(tmp_path, scale, path):
    done = run(tmp_path, "--scale", scale)
    assert done.returncode == 4
    assert f"{path}: missing" in done.stderr
