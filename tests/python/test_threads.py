"""Threads, signals, forks and the end of the interpreter, each in a separate process."""

import os
import subprocess
import sys
import textwrap

from conftest import HOST

# A named pipe makes reading last as long as the test wants, because the reader waits for the writer.
START = f"""
import os, signal, sys, threading
import etude
HOST = {str(HOST)!r}
os.mkfifo("trace.json")
"""


def run(source, tmp_path, code=0):
    """Returns the output of a program. stderr must be empty."""
    done = subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(source)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, "")
    return done.stdout


def test_others_run_while_a_trace_is_read(tmp_path):
    source = """
        import gzip
        def write():
            count = sum(range(100_000))  # needs the GIL, and ends before there is anything to read
            with open("trace.json", "wb") as file:
                file.write(gzip.open(HOST).read())
            print(count)
        writer = threading.Thread(target=write)
        writer.start()
        trace = etude.open("trace.json")
        writer.join()
        print(len(trace))
    """
    assert run(source, tmp_path) == "4999950000\n224\n"


def test_ctrl_c_ends_reading(tmp_path):
    source = """
        told = []  # two threads that print at once mix up their lines
        def write():
            head = b'{"schema": "1.1.1", "pid": 1, "nodes": [{"id": 1, "name": "x", "ctrl_deps": 1, "attrs": []}'
            with open("trace.json", "wb", buffering=0) as file:
                file.write(head)
                os.kill(os.getpid(), signal.SIGINT)
                number = 1
                try:
                    while True:  # without end
                        number += 1
                        file.write(b',{"id": %d, "name": "x", "ctrl_deps": 1, "attrs": []}' % number)
                except BrokenPipeError:
                    told.append("nobody reads")
        writer = threading.Thread(target=write)
        writer.start()
        try:
            etude.open("trace.json")
        except KeyboardInterrupt:
            told.append("interrupted")
        writer.join()
        print(sorted(told), len(etude.open(HOST)))
    """
    assert run(source, tmp_path) == "['interrupted', 'nobody reads'] 224\n"


def test_a_handler_that_goes_on_lets_reading_end(tmp_path):
    source = """
        import gzip
        signal.signal(signal.SIGUSR1, lambda *_: print("seen"))
        def write():
            os.kill(os.getpid(), signal.SIGUSR1)
            with open("trace.json", "wb") as file:
                file.write(gzip.open(HOST).read())
        writer = threading.Thread(target=write)
        writer.start()
        print(len(etude.open("trace.json")))
        writer.join()
    """
    assert run(source, tmp_path) == "seen\n224\n"


def test_threads_share_a_trace(tmp_path):
    source = """
        trace = etude.open(HOST)
        expected = etude.stats(trace).to_json()
        results = []
        def use():
            for _ in range(20):
                uses = trace.tensor_uses
                results.append((
                    etude.stats(trace).to_json() == expected,
                    trace.nodes["name"].to_arrow().to_pylist() == names,
                    int(trace.nodes["id"].values.sum()), uses["node"].values.ctypes.data,
                    trace.nodes["start_ns"].values.ctypes.data, len(etude.open(HOST)),
                ))
        names = etude.open(HOST).nodes["name"].to_arrow().to_pylist()
        threads = [threading.Thread(target=use) for _ in range(6)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(results), len(set(results)), results[0][:2])
    """
    assert run(source, tmp_path) == "120 1 (True, True)\n"


def test_errors_in_threads_are_their_own(tmp_path):
    source = """
        from concurrent.futures import ThreadPoolExecutor
        def read(name):
            try: return len(etude.open(name))
            except etude.Error as error: return error.code
        with ThreadPoolExecutor(4) as pool:
            print(list(pool.map(read, [HOST, "no", HOST, "/dev/null"] * 10)) == [224, "io", 224, "bad_input"] * 10)
    """
    assert run(source, tmp_path) == "True\n"


def test_a_trace_survives_a_fork(tmp_path):
    source = """
        trace = etude.open(HOST)
        ids = trace.nodes["id"].values
        child = os.fork()
        if child == 0:
            same = len(etude.open(HOST)) == len(trace) == 224 and int(ids.sum()) > 0
            same = same and len(etude.stats(trace)["ops"]) > 0 and trace.nodes["name"].to_arrow()[3].as_py() != ""
            os._exit(0 if same else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run(source, tmp_path) == "0\n"


def test_the_interpreter_ends_with_live_views(tmp_path):
    source = """
        import sys
        trace = etude.open(HOST)
        sys.kept = [trace, trace.nodes, trace.nodes["id"].values, trace.deps, etude.stats(trace), etude.open(os.path.dirname(HOST) + "/capture")]
        kept = sys.kept[2][3:]
        table = trace.to_arrow()
        class Late:
            def __del__(self): len(trace.nodes["id"].values)
        late = Late()
    """
    run(source, tmp_path)


def test_the_interpreter_ends_while_another_thread_reads(tmp_path):
    source = """
        def read():
            etude.open("trace.json")
        threading.Thread(target=read, daemon=True).start()
        file = open("trace.json", "wb", buffering=0)  # waits for the reader
        file.write(b'{"schema": "1.1.1", "nodes": [')
        print("over", flush=True)
    """
    assert run(source, tmp_path) == "over\n"
