"""Very large or unusual input for tests/storm.py, made on the fly, and the commands that read it."""

import json
import os
import resource
import shutil
import subprocess

TIMEOUT_S = 300
BIG_BYTES = 12 << 30  # of address space, for the largest input


def errors_in(stderr):
    lines = stderr.decode("utf-8", "replace").splitlines()
    return [line for line in lines if line.startswith("etude: ") and not line.startswith("etude: warning: ")]


def profile(events):
    """Writes a Kineto profile of (name, begin in microseconds, duration, other arguments)."""
    text = (
        f'{{"ph":"X","cat":"cpu_op","name":{json.dumps(name)},"pid":1,"tid":1,"ts":{begin},"dur":{duration},"args":{args}}}'
        for name, begin, duration, args in events
    )
    return '{"schemaVersion":1,"traceEvents":[' + ",\n".join(text) + "]}"


def host_trace(names, attribute="x"):
    """Writes a PyTorch execution trace of a thread with these calls."""
    values = '"inputs":{"values":[],"shapes":[],"types":[]},"outputs":{"values":[],"shapes":[],"types":[]}'
    text = (
        f'{{"id":{i + 2},"name":{json.dumps(name)},"ctrl_deps":{1 if i == 0 else 2},{values},'
        f'"attrs":[{{"name":"rf_id","type":"uint64","value":{i}}},{{"name":"op_schema","type":"string","value":"{attribute}"}}]}}'
        for i, name in enumerate(["[pytorch|profiler|execution_trace|thread]", *names])
    )
    return '{"schema":"1.1.1-chakra.0.0.4","pid":1,"nodes":[' + ",\n".join(text) + "]}"


JUMPS = (0, 2**63 // 1000, 5, -(2**63) // 1000, 7e17, 3, "9223372036854775807", 1e30, 6, "-9223372036854775808", 0.0004)
LONG = "n" * 100_000_000
MILLION = 1_000_000
BIG = {
    "million_events": lambda: profile((f"aten::op{i % 100}", 2 * i, 1, "{}") for i in range(MILLION)),
    "million_nodes": lambda: host_trace(f"aten::op{i % 100}" for i in range(MILLION)),
    "nested_events": lambda: profile((f"aten::op{i}", i, 2 * (20_000 - i), "{}") for i in range(20_000)),
    "long_name": lambda: profile([("first", 0, 5, "{}"), (LONG, 1, 2, "{}")]),
    "long_argument": lambda: profile([("first", 0, 5, f'{{"Input Dims":"{LONG}","a":"{LONG[:9]}"}}')]),
    "long_host_name": lambda: host_trace(["aten::add", LONG]),
    "long_attribute": lambda: host_trace(["aten::add"], LONG),
    "clocks": lambda: profile((f"e{i}", at, i - 4, "{}") for i, at in enumerate(JUMPS * 3)),
    "clocks_alike": lambda: profile((f"e{i}", 0, 2**63 // 1000 - i, "{}") for i in range(50)),
    "deep": lambda: profile([("first", 0, 5, '{"a":' + "[" * 250 + "]" * 250 + "}")]),
    "too_deep": lambda: profile([("first", 0, 5, '{"a":' + "[" * MILLION + "]" * MILLION + "}")]),
}
BIG_MADE = {  # by commands
    "thousand_ranks": "generate llm llama-3-8b --layers 1 --dp 250 --tp 4 --device h100-sxm -o in/job/big",
    "thousand_patterns": "generate microbench all_reduce --ranks 1000 -o in/job/big",
    "million_messages": "generate microbench all_reduce --ranks 2 --count 1000000 -o in/job/big",
}
READS = (
    "info IN --json", "validate IN --json", "stats IN --json", "breakdown IN --json", "critical-path IN --json",
    "memory IN --json", "diff IN IN --json", "report IN -o out/p.html", "convert IN -o out/c --to linked", "merge IN -o out/m.et",
    "convert IN -o out/j --to classes", "convert IN -o out/p --to pytorch", "timeline IN -o out/t.json",
    "timeline IN -o out/t.pftrace", "graph IN --rank 0 -o out/g.dot", "jsonize IN -o out/j.json", "link IN in/mlp_kineto.json.gz -o out/l.json",
    "slice IN --op aten::* -o out/s", "simulate IN --network Ring(RANKS):50GB/s,500ns --json",
)


def big(place, name, inputs, bin_dir, run):
    """Runs every command that reads on one large or unusual input."""
    env = dict(os.environ, PATH=f"{bin_dir}:{os.environ['PATH']}")
    for part in ("in", "out"):
        (place / part).mkdir(parents=True)
    shutil.copy(inputs / "mlp_kineto.json.gz", place / "in")
    trace = place / "in/trace.json"
    if name in BIG:
        trace.write_text(BIG[name]())
    else:
        subprocess.run(["etude", *BIG_MADE[name].split()], cwd=place, env=env, check=True, stdout=subprocess.DEVNULL)
        trace = place / "in/job"

    def read(words):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (BIG_BYTES, BIG_BYTES))

        done = subprocess.run(["etude", *words], cwd=place, env=env, capture_output=True, timeout=TIMEOUT_S, preexec_fn=limit)
        errors = errors_in(done.stderr)
        told = done.stderr[-2000:].decode("utf-8", "replace")
        assert done.returncode in (0, 1, 2, 3), f"exit code {done.returncode}: {told}"
        assert len(errors) == (done.returncode > 1), f"exit code {done.returncode}, {len(errors)} messages: {told}"
        assert len(done.stderr) < 100_000, f"{len(done.stderr)} bytes of messages"
        if "--json" in words and done.returncode < 2:
            json.loads(done.stdout)

    for line in READS:
        ranks = "1000" if "thousand" in name else "2" if name in BIG_MADE else "1"
        words = line.replace("IN", str(trace.relative_to(place))).replace("RANKS", ranks).split()
        run(f"big/{name}/{line.split()[0]}", lambda words=words: read(words))
        shutil.rmtree(place / "out")
        (place / "out").mkdir()
