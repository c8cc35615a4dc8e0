"""Starts the programs of bench/, and runs those for simulations and generated jobs on their smallest cases."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")


def is_program(path):
    return path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python3")


PROGRAMS = sorted(path.name for path in BENCH.iterdir() if is_program(path))


def run(name, *words):
    done = subprocess.run([sys.executable, BENCH / name, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_says_what_it_takes(name):
    assert run(name, "--help").startswith("usage: ")


@pytest.mark.parametrize(
    "words",
    [("simulate", "--only", "ring of 256"), ("generate_llm", "--only", "8 ranks", "--random", 0), ("generate_ranks",)],
    ids=lambda words: words[0],
)
def test_it_measures(words):
    out = run(*words, "--etude", ETUDE, "--runs", 1)
    assert "bars:\n" in out and "times" in out


def test_the_page_of_bars_is_made_of_its_figures(tmp_path):
    shutil.copytree(BENCH, tmp_path / "bench")
    docs = tmp_path / "docs"
    docs.mkdir()
    shutil.copy(BENCH.parent / "docs/status.json", docs)
    subprocess.run([sys.executable, tmp_path / "bench/status", "--page"], check=True, cwd=tmp_path)
    assert (docs / "status.md").read_text() == (BENCH.parent / "docs/status.md").read_text()
