"""Speech recognition at both scales, on generated sounds."""

import json
import math
import os
import subprocess
import wave

import pytest
from paper_data import tone, write_librispeech

from etude import suite_data

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")


def run(folder, *options, code=0):
    command = [ETUDE, "suite", "run", "speech-recognition", "--data", folder, "--threads", "1", *options]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)["tasks"][0]["runs"][0] if "--json" in options else done.stderr


def write_wav(path, samples, rate):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, len(samples), "NONE", "not compressed"))
        file.writeframes(samples.tobytes())


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Writes ten digits of two speakers, each with a different tone."""
    folder = tmp_path_factory.mktemp("digits")
    recordings = folder / "spoken-digits" / "recordings"
    recordings.mkdir(parents=True)
    for digit in range(10):
        for speaker, take in (("a", 0), ("b", 4), ("a", 5), ("b", 12)):
            seconds = 0.2 + 0.01 * take
            write_wav(recordings / f"{digit}_{speaker}_{take}.wav", tone(300 + 300 * digit, seconds, 8000), 8000)
    return folder


@pytest.fixture
def librispeech(tmp_path):
    write_librispeech(tmp_path)
    return tmp_path


def test_digits_are_learned(digits, tmp_path):
    words = ("--json", "--batch", "16", "--most-steps", "12", "--evaluate-every", "6", "-o", tmp_path / "synthetic")
    found = run(digits, *words, code=1)
    assert found["samples"] == 4000
    assert 0.8 < found["baseline"] < 1  # one word, correct if a string has it
    losses = [point["loss"] for point in found["curve"]]
    assert losses[1] < losses[0]
    assert found["data_set"] == "spoken-digits"

    # The same folder accepts no runs on the other data set, and the two are not ranked.
    people = tmp_path / "data/free-spoken-digit-dataset"
    people.parent.mkdir()
    people.symlink_to(digits / "spoken-digits")
    said = run(tmp_path / "data", *words[1:], code=2)
    assert "contains the data set free-spoken-digit-dataset, but earlier runs used spoken-digits" in said
    name = "speech-recognition.smoke.quality.1.json"
    (tmp_path / "people").mkdir()
    (tmp_path / "people" / name).write_text(json.dumps(found | {"data_set": people.name}))
    folders = [tmp_path / "synthetic", tmp_path / "people"]
    done = subprocess.run([ETUDE, "suite", "compare", *folders], text=True, capture_output=True)
    assert done.returncode == 3, done.stderr
    assert f"{folders[0]} has runs on spoken-digits, {folders[1]} on free-spoken-digit-dataset" in done.stderr
    done = subprocess.run([ETUDE, "suite", "report", *folders, "-o", tmp_path / "page.html"], text=True, capture_output=True)
    assert "spoken-digits" in done.stdout and "batch 16" in done.stdout
    page = (tmp_path / "page.html").read_text()
    assert "speech-recognition on free-spoken-digit-dataset" in page
    for key in ("course_speech-recognition", "course_speech-recognition_2"):
        assert page.count(f'data-section="{key}"') == 1


def test_the_paper_s_network_takes_a_step(librispeech):
    found = run(librispeech, "--json", "--scale", "paper", "--most-steps", "1", code=1)
    assert found["parameters"] == 41_187_968  # as in AIBench's program
    assert found["samples"] == 3
    # Four words in two utterances; both have "NO".
    assert found["baseline"] == pytest.approx(2 / 4)
    assert math.isfinite(found["curve"][0]["loss"])
    assert found["target"] == pytest.approx(0.0533)
    assert found["data_set"] == "LibriSpeech train-clean-100"


def test_without_data_it_is_not_available(tmp_path):
    assert "spoken-digits: missing" in run(tmp_path, code=4)
    assert "train-clean-100: missing" in run(tmp_path, "--scale", "paper", code=4)


def test_what_is_wrong_with_recordings_is_said(tmp_path):
    recordings = tmp_path / "free-spoken-digit-dataset" / "recordings"
    recordings.mkdir(parents=True)
    write_wav(recordings / "3_a_5.wav", tone(500, 0.2, 8000), 8000)
    assert "no recordings to test" in run(tmp_path, code=3)
    wrong = recordings / "3_a_0.wav"
    write_wav(wrong, tone(500, 0.2, 16000), 16000)
    assert f"{wrong}: found 16000 samples per second, expected 8000" in run(tmp_path, code=3)
    wrong.write_bytes(b"RIFFnothing")
    assert str(wrong) in run(tmp_path, code=3)
    wrong.rename(recordings / "three_a_0.wav")
    assert "expected a name such as 7_jackson_32.wav" in run(tmp_path, code=3)


def test_what_is_wrong_with_librispeech_is_said(librispeech):
    chapter = librispeech / "LibriSpeech/train-clean-100/84/121"
    sound = chapter / "84-121-0001.flac"
    sound.write_bytes(sound.read_bytes()[:-300])
    once = ("--scale", "paper", "--most-steps", "1")
    assert str(sound) in run(librispeech, *once, code=3)
    sound.unlink()
    assert str(sound) in run(librispeech, *once, code=5)
    text = chapter / "84-121.trans.txt"
    text.write_text("84-121-0000 GO\n84-121-0001 it's 5\n")
    assert f"{text}:2: found '84-121-0001 it's 5'" in run(librispeech, *once, code=3)


def test_resampling_keeps_what_is_low_and_drops_what_is_high():
    def deviation(samples):
        return math.sqrt(sum(value * value for value in samples) / len(samples))

    for hertz, share in ((400, 1), (2500, 1), (6000, 0)):
        before = tone(hertz, 0.1, 22050)
        after = suite_data.resample(before, 22050, 8000)
        assert len(after) == len(before) * 160 // 441
        middle = after[100:-100]
        assert deviation(middle) / deviation(before) == pytest.approx(share, abs=0.03)
