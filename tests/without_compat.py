"""Checks a build without the compatible tools: their commands fail with exit code 4, all others work."""

import pathlib
import subprocess
import sys
import tempfile

ETUDE, DATA = sys.argv[1:]
HOST = str(pathlib.Path(DATA) / "mlp_et.json.gz")


def run(*words):
    done = subprocess.run([ETUDE, *words], capture_output=True, text=True)
    return done.returncode, done.stderr


with tempfile.TemporaryDirectory() as folder:
    output = pathlib.Path(folder) / "x.et"
    lacks = "etude: this build lacks the compatible tools; build Etude with -DETUDE_COMPAT=ON\n"
    for words in (["compat", "chakra_jsonizer", "--help"],
                  ["convert", HOST, "-o", str(output), "--compat", "chakra-1.0.0"],
                  ["jsonize", HOST, "-o", str(output.with_suffix(".json")), "--compat", "chakra-1.0.0"]):  # fmt: skip
        found = run(*words)
        assert found == (4, lacks), (words, found)
        assert not list(pathlib.Path(folder).iterdir())
    code, said = run("convert", HOST, "-o", str(output))
    assert code == 0 and output.stat().st_size > 0, said
    code, said = run("jsonize", str(output), "-o", str(output.with_suffix(".json")))
    assert code == 0, said
