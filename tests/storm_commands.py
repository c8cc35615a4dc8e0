"""The commands of tests/storm.py: every command that writes, as run in a folder with `in` and `out`."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

from storm_input import TIMEOUT_S, errors_in

# Prefixes of incomplete outputs: hidden names, and a sweep's jobs in the making.
TEMPORARY = re.compile(r"(^|/)\.|(^|/)jobs/[0-9a-f]{16}\.")

# The inputs of the commands below, made once.
INPUTS = """
cp -r "$TESTDATA"/. .
mkdir pair bin
for rank in 0 1; do cp mlp_et.json.gz pair/host.$rank.json.gz; cp mlp_kineto.json.gz pair/device.$rank.json.gz; done
printf '#!/bin/sh\\nexec cat "$4" > "$3"\\n' > bin/dot && chmod +x bin/dot
etude link mlp_et.json.gz mlp_kineto.json.gz -o linked.json
printf '[traces]\\nmlp = "linked.json"\\n[[part]]\\ntrace = "mlp"\\nrepeat = 40\\n' > long.toml
etude compose long.toml -o long.json
etude generate llm llama-3-8b --layers 2 --dp 2 --tp 2 --device h100-sxm -o llm/job
etude generate microbench all_reduce --ranks 8 -o ar/job
cp -r "$TESTDATA/../golden/compat/small_pair" small
cat > generated.toml <<END
[base]
network = "Ring(4):50GB/s,500ns"
generate = { what = "microbench", model = "all_reduce", ranks = 4 }
[grid]
generate.size = ["1MiB", "2MiB", "3MiB"]
network.latency = ["1us", "2us"]
END
"""
SMALL_STAGE = "--num_stacks 1 --dmodel 64 --dff 64 --head 4 --kvhead 2 --dvocal 64 --seq 16 --batch 4"

COMMANDS = {
    "link": "link in/mlp_et.json.gz in/mlp_kineto.json.gz -o out/l.json.gz",
    "link_compat": "link --compat chakra-1.0.0 in/small/host.json in/small/device.json -o out/l.json",
    "link_folder": "link in/pair -o out",
    "convert": "convert in/long.json -o out/c.et",
    "convert_both": "convert in/mlp_et.json.gz in/mlp_kineto.json.gz -o out/c.et.zst --linked out/l.json",
    "convert_folder": "convert in/pair -o out --to linked",
    "convert_pytorch": "convert in/long.json -o out --to pytorch",
    "convert_classes": "convert in/llm -o out/job --to classes",
    "convert_packed": "convert in/llm -o out/job --to packed",
    "convert_astra": "convert in/pair --for astra-sim -o out/job",
    "merge": "merge in/groups/capture.0.etude in/groups/capture.1.etude -o out/m.json.gz",
    "slice": "slice in/long.json --phase forward -o out/s.json",
    "slice_folder": "slice in/pair --op aten::* -o out",
    "compose": "compose in/long.toml -o out/c.json",
    "timeline": "timeline in/long.json -o out/t.json",
    "timeline_perfetto": "timeline in/long.json -o out/t.pftrace",
    "report": "report in/pair -o out/p.html",
    "graph": "graph in/long.json --most-nodes 20000 -o out/g.dot",
    "graph_svg": "graph in/long.json --most-nodes 20000 -o out/g.svg",
    "jsonize": "jsonize in/long.json -o out/j.json",
    "generate": "generate microbench all_reduce --ranks 8 --count 2000 -o out/g",
    "generate_model": "generate llm llama-3-8b --layers 2 --dp 2 --tp 2 -o out/g",
    "generate_classes": "generate llm llama-3-8b --layers 2 --dp 2 --tp 2 --to classes -o out/job",
    "simulate": "simulate in/ar/job --network Ring(8):50GB/s,500ns -o out/sim",
    "sweep": "sweep in/generated.toml -o out --report out/p.html",
    "certificate": "compare --certificate in/certificate.json -o out/c.html",
    "record": "record -o out/rec -- sh -c :",
    "compat_link": "compat chakra_trace_link --rank 0 --chakra-host-trace in/small/host.json"
    " --chakra-device-trace in/small/device.json --output-file out/l.json",
    "compat_convert": "compat chakra_converter PyTorch --input in/small/linked.json --output out/c.et",
    "compat_jsonize": "compat chakra_jsonizer --input_filename in/ar/job.0.et --output_filename out/j.json",
    "compat_stage": f"compat stage --output_dir out/job --output_name s.%d.et {SMALL_STAGE}",
    "benchmark": "benchmark in/capture -o out/b --iterations 1 --warmup 0",
}
NEEDS_TORCH = ("benchmark",)
SHORT = ("link", "convert_classes", "graph_svg", "generate", "sweep", "record")
# Exit codes of undisturbed commands that are not 0: the certificate's answer is no, and without torch no step is
# recorded.
EXIT_CODES = {"certificate": 1, "record": 1}


def snapshot(folder):
    """Returns files below `folder` by their names, and folders."""
    found = {}
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            found[str(path.relative_to(folder))] = None if path.is_dir() else path.read_bytes()
    return found


class Command:
    """One of COMMANDS in a separate folder, with its undisturbed output."""

    def __init__(self, name, place, inputs, bin_dir):
        self.name, self.place, self.bin = name, place, bin_dir
        self.out = place / "out"
        self.words = shlex.split(COMMANDS[name])
        self.normal_code = EXIT_CODES.get(name, 0)
        place.mkdir()
        (place / "in").symlink_to(inputs)
        (place / "tmp").mkdir()
        self.complete = self.undisturbed()
        begin = time.monotonic()
        again = self.undisturbed()
        self.seconds = time.monotonic() - begin
        self.varying = {path for path in again if again[path] != self.complete.get(path)}
        files = [path for path, content in self.complete.items() if content is not None]
        # An earlier output: another one if the command writes a single file, else the same.
        self.old = {path: b"old\n" for path in files} if len(files) == 1 else self.complete

    def start(self, words=None, before=(), **more):
        env = dict(os.environ, PATH=f"{self.bin}:{self.place}/in/bin:{os.environ['PATH']}",
                   TMPDIR=str(self.place / "tmp"))
        more = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen([*before, "etude", *(words or self.words)], cwd=self.place, env=env,
                                stdin=subprocess.DEVNULL, start_new_session=True, **more)

    def end(self, process):
        """Returns exit code and stderr after all processes of the command have ended."""
        try:
            stderr = process.communicate(timeout=TIMEOUT_S)[1]
            deadline = time.monotonic() + TIMEOUT_S
            while time.monotonic() < deadline:
                os.killpg(process.pid, 0)
                time.sleep(0.005)
            raise AssertionError("a process that it started does not end")
        except ProcessLookupError:
            return process.returncode, stderr
        except subprocess.TimeoutExpired:
            raise AssertionError(f"does not end in {TIMEOUT_S} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def run(self, *args, **more):
        return self.end(self.start(*args, **more))

    def fill(self, before):
        """Creates the contents of the output folder `before` the command. The folder for temporary files is empty."""
        self.out.mkdir(exist_ok=True)
        for path in (*self.out.iterdir(), *self.place.joinpath("tmp").iterdir()):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for path, content in before.items():
            self.out.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
            self.out.joinpath(path).mkdir(exist_ok=True) if content is None else self.out.joinpath(path).write_bytes(content)

    def undisturbed(self):
        self.fill({})
        code, stderr = self.run()
        assert code == self.normal_code, f"exit code {code} undisturbed: {stderr.decode()}"
        self.normal_errors = len(errors_in(stderr))
        return snapshot(self.out)

    def judge(self, before, temporary):
        """Checks that the output is unchanged or complete. `temporary`: files of killed processes may exist."""
        now = snapshot(self.out)
        for path, content in now.items():
            if TEMPORARY.search(path):
                assert temporary, f"{path} is left behind"
            elif path not in self.varying and content is not None:
                assert content in (before.get(path), self.complete.get(path)), f"{path} is half-written"
        for path in before:
            assert path in now, f"{path} is lost"
        left = os.listdir(self.place / "tmp")
        assert temporary or not left, f"{left} left in the folder for temporary files"

    def recovers(self):
        """Checks that the same command afterwards writes the complete output and nothing else."""
        code, stderr = self.run()
        assert code == self.normal_code, f"exit code {code} when run again: {stderr.decode()}"
        now = snapshot(self.out)
        assert not self.differs(now), self.differs(now)

    def is_done(self):
        """Checks that the output is complete, and nothing else is left."""
        self.judge(self.complete, temporary=False)
        assert not self.differs(snapshot(self.out)), self.differs(snapshot(self.out))

    def differs(self, now):
        """Returns how the existing output differs from the complete one; "" if it does not."""
        # An empty folder may have existed before.
        others = [path for path in set(now) ^ set(self.complete) if now.get(path, b"") is not None]
        if others:
            return f"{others} are lost or left"
        wrong = [path for path in self.complete if path not in self.varying and now.get(path) != self.complete[path]]
        return f"{wrong} are not complete" if wrong else ""

    def refuses(self, result, codes, names, before):
        """Checks for one message with all of `names`, one of the exit codes, and no partial output."""
        code, stderr = result
        errors = errors_in(stderr)
        assert code in codes, f"exit code {code}: {stderr.decode()}"
        assert len(errors) == 1, f"{len(errors)} messages: {stderr.decode()}"
        assert all(name in errors[0] for name in names), f"expected {names} in: {errors[0]}"
        self.judge(before, temporary=False)
