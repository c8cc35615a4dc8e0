"""Image compression: the paper's model by formulas written out here, baselines of photographs, and wrong files."""

import json
import os
import pathlib
import shutil
import random
import struct
import subprocess
import zlib

import pytest
from etude import suite_data
from etude.package_index import Unavailable
from paper_data import write_imagenet
from pictures import grey_jpeg

BIN = pathlib.Path(os.environ.get("ETUDE_BIN", "build/bin"))
DATA = os.environ["ETUDE_SUITE_DATA"]
TASK = "image-compression"


def run(data, *options):
    command = [BIN / "etude-torch", "suite", "run", TASK, "--data", data, "--threads", "1", *options]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)


def record(done, code=1):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["tasks"][0]["runs"][0]


def lstm(inner, out, side):
    """Four gates by 3 × 3 places of the input and side × side places of the state, without biases."""
    return 4 * out * (9 * inner + side * side * out)


def encoder(first, *widths):
    return 27 * first + sum(lstm(a, b, 1) for a, b in zip((first, *widths), widths))


def decoder(bits, widths):
    """Between LSTMs, four channels make 2 × 2 pixels."""
    inner = (widths[0], *(width // 4 for width in widths))
    return bits * widths[0] + sum(lstm(a, b, side) for a, b, side in zip(inner, widths, (1, 1, 3, 3))) + 3 * inner[-1]


def test_the_formula_gives_the_published_size():
    sizes = (encoder(64, 256, 512, 512), 32 * 512, decoder(32, (512, 512, 256, 128)))
    assert sizes == (17_106_624, 16_384, 18_333_792) and sum(sizes) == 35_456_800


def test_paper_scale(tmp_path):
    """Training pictures in one folder, those held out in a folder per class."""
    write_imagenet(tmp_path)
    folder = tmp_path / "imagenet/train"
    for path in list(folder.glob("*/*.JPEG")):
        path.rename(folder / path.name)
    options = ("--scale", "paper", "--mode", "steps", "--batch", 1, "--warmup", 0, "--iterations", 1, "--json")
    found = record(run(tmp_path, *options), 0)
    assert found["parameters"] == 35_456_800 and found["samples"] == 4


def test_learning_and_figures():
    """A few steps improve what the codec makes of photographs. Block means and JPEG are the same in each run."""
    found = record(run(DATA, "--batch", 8, "--most-steps", 20, "--evaluate-every", 10, "--json"))
    first, last = (point["quality"] for point in found["curve"])
    assert first > 0.3 and 0.4 < last < 0.78  # 0.146 without learning
    figures = found["figures"]
    assert figures["bits per pixel"] == 0.25 and 0.24 < figures["bits per pixel of JPEG"] <= 0.25
    assert found["baseline"] == pytest.approx(0.628, abs=0.001)
    assert figures["MS-SSIM of block means"] == pytest.approx(0.8206, abs=0.001)
    assert figures["MS-SSIM of JPEG"] == pytest.approx(0.876, abs=0.01)


def photograph(height, width, colours=3, lost=0):
    return struct.pack(">BBBBIII", 0, 0, 8, 3, height, width, colours) + bytes(height * width * colours - lost)


@pytest.mark.parametrize(
    "part, sizes, said",
    [
        ("train", (40, 40, 3, 1), "found 4799 bytes of elements, expected 4800"),
        ("train", (40, 40, 1), "found an array of 40 × 40 × 1, expected rows × columns × 3 colours"),
        ("train", (31, 40), "found 31 × 40 pixels, expected 32 × 32 or more"),
        ("test", (300, 200), "found 300 × 200 pixels, expected 256 × 256 or more"),
    ],
)
def test_wrong_photographs_are_named(tmp_path, part, sizes, said):
    for name, size in (("train", 40), ("test", 256)):
        (tmp_path / "photographs" / name).mkdir(parents=True)
        (tmp_path / "photographs" / name / "a-idx3-ubyte").write_bytes(photograph(size, size))
    (tmp_path / "photographs" / part / "b-idx3-ubyte").write_bytes(photograph(*sizes))
    done = run(tmp_path)
    assert done.returncode == 3, done.stderr
    assert f"photographs/{part}/b-idx3-ubyte: " in done.stderr and said in done.stderr


def test_missing_and_empty_folders(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 4 and "etude suite setup" in done.stderr
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 4 and "imagenet/train: missing" in done.stderr
    write_imagenet(tmp_path)
    shutil.rmtree(tmp_path / "imagenet/val")
    (tmp_path / "imagenet/val").mkdir()
    done = run(tmp_path, "--scale", "paper")
    assert done.returncode == 3 and "imagenet/val: found no images" in done.stderr


def test_a_damaged_picture(tmp_path):
    write_imagenet(tmp_path)
    for path in (tmp_path / "imagenet/train").glob("*/*.JPEG"):
        path.write_bytes(grey_jpeg(64)[:40])
    done = run(tmp_path, "--scale", "paper", "--mode", "steps", "--warmup", 0, "--iterations", 1)
    assert done.returncode == 3 and ".JPEG: " in done.stderr


def png(height, width, kind, rows):
    """A PNG file with 8 bits a channel; rows begin with their filter."""

    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")


def guess(kind, left, above, corner):
    """What a filter of PNG subtracts from a byte."""
    if kind == 4:
        value = left + above - corner
        return min((left, above, corner), key=lambda one: abs(one - value))
    return (0, left, above, (left + above) // 2)[kind]


@pytest.mark.parametrize("kind, channels", [(0, 1), (2, 3), (6, 4)])
def test_png_files(kind, channels):
    width, numbers = 5, random.Random(kind)
    pixels = [[numbers.randrange(256) for _ in range(width * channels)] for _ in range(10)]
    rows = b""
    for y, row in enumerate(pixels):
        above = pixels[y - 1] if y else [0] * len(row)
        shifted = [0] * channels
        differences = [value - guess(y % 5, a, b, c) & 255
                       for value, a, b, c in zip(row, shifted + row, above, shifted + above)]  # fmt: skip
        rows += bytes([y % 5, *differences])
    height, found_width, found = suite_data.png_pixels("a", png(len(pixels), width, kind, rows))
    colours = [row[x * channels + min(colour, channels - 1)] for row in pixels for x in range(width) for colour in range(3)]
    assert (height, found_width, list(found)) == (len(pixels), width, colours)


@pytest.mark.parametrize(
    "data, said",
    [
        (b"", "no PNG file"),
        (png(1, 1, 2, bytes(4))[:30], "expected a PNG file"),
        (png(1, 1, 3, bytes(2)), "unsupported kind of pixels"),
        (png(1, 2, 0, bytes(2)), "wrong number of pixels"),
        (png(1, 1, 0, b"\x05\0"), "unknown filter 5"),
    ],
)
def test_wrong_png_files(data, said):
    with pytest.raises(Unavailable, match=said):
        suite_data.png_pixels("a", data)
