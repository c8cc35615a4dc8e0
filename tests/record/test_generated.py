"""`etude generate llm` compared with recordings of the same steps: a small GPT on two Gloo ranks
(bench/real_jobs.py).

All compared quantities are the same, except for differences with a name, which docs/models/transformer.md lists.
"""

import os
import pathlib
import subprocess
import sys

import pytest

BIN = pathlib.Path(os.environ["ETUDE_BIN"])
BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from real_jobs import JOBS  # noqa: E402
from real_steps import compare, run  # noqa: E402


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Records all jobs. torch is imported once."""
    folder = tmp_path_factory.mktemp("recordings")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ETUDE_RECORD_")}
    environment["PYTHONPATH"] = str(BENCH.parent / "python")
    library = (BIN.parent / "lib/etude/libetude_recorder.so").resolve()
    environment["ETUDE_RECORD_LIBRARY"] = os.environ.get("ETUDE_RECORD_LIBRARY", str(library))
    environment |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        [sys.executable, BENCH / "real_programs.py", folder], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def compared(recordings, tmp_path):
    def of(name):
        comparisons = compare(BIN / "etude", recordings / name, JOBS[name], tmp_path)
        for comparison in comparisons:
            assert {row.name: (row.recorded, row.generated, row.terms) for row in comparison.rows if not row.explained} == {}
            assert [what for what, same in comparison.same.items() if not same] == []
        return [{row.name: row for row in comparison.rows} for comparison in comparisons]

    return of


def terms(rows):
    return {row.name: dict(row.terms) for row in rows.values() if row.terms}


# Three layers of 32 hidden units, 4 heads and 128 units of feed-forward; 3 sequences of 16 tokens, 500 words.
ROWS, HIDDEN, FFN, WORDS = 48, 32, 128, 500
QKV, PROJECTION, UP = ROWS * HIDDEN * 3 * HIDDEN, ROWS * HIDDEN * HIDDEN, ROWS * HIDDEN * FFN
FORWARD = 3 * 2 * (QKV + PROJECTION + 2 * UP) + 2 * ROWS * HIDDEN * WORDS
LAYER = 12 * HIDDEN**2 + 13 * HIDDEN
ENDS = 2 * WORDS * HIDDEN + 16 * HIDDEN + 2 * HIDDEN
# All pairs of tokens, and the unmasked ones: 3 layers, 3 sequences, 4 heads.
PAIRS, USED = 36 * 16 * 16, 36 * 16 * 17 // 2


def test_alone(compared):
    rows, _ = compared("alone")
    assert (rows["products forward"].recorded, rows["products backward"].recorded) == (13, 26)
    assert rows["operations forward"].recorded == FORWARD
    assert rows["operations backward"].recorded == 2 * FORWARD
    assert rows["attention forward"].recorded == 4 * 8 * PAIRS
    assert rows["attention backward"].recorded == 10 * 8 * PAIRS
    assert rows["parameters"].recorded == 3 * LAYER + ENDS
    assert rows["logits"].recorded == ROWS * WORDS
    # A word for each part that the two do not share.
    biases = 3 * ROWS * (3 * HIDDEN + FFN)
    assert terms(rows) == {
        "operations forward": {"biases": biases},
        "bytes forward": {"biases": -3 * 4 * 2 * HIDDEN},
        "attention forward": {"softmax": 6 * USED, "masked pairs": -4 * 8 * (PAIRS - USED)},
        "operations backward": {"biases": biases},
        "bytes backward": {
            "gradients added to": 4 * (3 * 12 * HIDDEN**2 + WORDS * HIDDEN),
            "biases": 3 * 4 * 2 * (3 * HIDDEN + FFN),
        },
        "attention backward": {"softmax": 8 * USED + 2 * 3 * ROWS * HIDDEN, "masked pairs": -10 * 8 * (PAIRS - USED)},
    }


def test_unfused_attention_and_a_tied_head(compared):
    rows, _ = compared("unfused")
    # Two micro-batches with two products forward and four backward. Operators of the softmax are separate.
    assert rows["operations forward"].recorded == 2 * FORWARD
    assert rows["attention forward"].recorded == 2 * 4 * 8 * PAIRS
    assert rows["attention backward"].recorded == 2 * 8 * 8 * PAIRS
    assert not rows["attention forward"].terms and not rows["attention backward"].terms
    assert rows["parameters"].recorded == 3 * LAYER + ENDS - WORDS * HIDDEN


@pytest.mark.parametrize("name", [name for name in JOBS if JOBS[name].program != "alone"])
def test_recorded_communications_meet(recordings, name):
    # Also on Gloo's threads, which begin in any order and make a copy for a reduce-scatter.
    assert ", 0 calls unmatched" in run(BIN / "etude", "info", recordings / name)


@pytest.mark.parametrize("name, calls", [("ddp", 3), ("ddp_default", 2), ("ddp_weights", 3 * 12 + 5)])
def test_data_parallel(compared, name, calls):
    for rows in compared(name):
        assert rows["all_reduce calls"].recorded == calls
        assert rows["all_reduce bytes"].recorded == 4 * rows["parameters"].recorded
        assert not rows["all_reduce bytes"].terms


def test_sharded(compared):
    for rows in compared("fsdp"):
        # The weights of the ends are gathered once, those of the layers forward and backward.
        assert (rows["all_gather calls"].recorded, rows["all_gather bytes"].recorded) == (7, 4 * (6 * LAYER + ENDS) // 2)
        assert (rows["reduce_scatter calls"].recorded, rows["reduce_scatter bytes"].recorded) == (4, 4 * (3 * LAYER + ENDS))
        assert not rows["all_gather bytes"].terms


def test_sharded_ends_and_an_odd_vocabulary(compared):
    for rank, rows in enumerate(compared("fsdp_ends")):
        # A row of embedding and of head is padded. Each is gathered twice, as shares, and reduced once.
        assert rows["all_gather calls"].recorded == 10
        assert rows["all_gather bytes"].terms == {"padded rows": -4 * 2 * 2 * HIDDEN // 2}
        assert rows["reduce_scatter bytes"].terms == {"padded rows": -4 * 2 * HIDDEN}
        assert rows["parameters"].terms == {"padded rows": HIDDEN if rank else -HIDDEN}


def test_sharded_with_a_tied_head(compared):
    for rows in compared("fsdp_tied"):
        # For each micro-batch.
        assert (rows["all_gather calls"].recorded, rows["reduce_scatter calls"].recorded) == (2 * 7, 2 * 4)
        assert rows["reduce_scatter bytes"].recorded == 2 * 4 * (3 * LAYER + ENDS - WORDS * HIDDEN)


@pytest.mark.parametrize("name, boundaries", [("gpipe", 1), ("1f1b", 1), ("interleaved", 3)])
def test_pipelines(compared, name, boundaries):
    first, last = compared(name)
    for rows in (first, last):
        # As many gradients are sent back.
        for kind in ("send", "recv"):
            assert (rows[f"{kind} calls"].recorded, rows[f"{kind} bytes"].recorded) == (4 * boundaries, 4 * boundaries * 4 * ROWS * HIDDEN)
    assert (first["logits"].recorded, last["logits"].recorded) == (0, 4 * ROWS * WORDS)
    layers = JOBS[name].shapes.layers
    assert first["parameters"].recorded + last["parameters"].recorded == layers * LAYER + ENDS


def test_tensor_parallel(compared):
    for rows in compared("tp"):
        # One for the embedding, two per layer and three for the loss; backward one for the head and two per layer.
        assert rows["all_reduce calls"].recorded == 1 + 2 * 3 + 3 + 1 + 2 * 3
        assert rows["all_reduce bytes"].recorded == 4 * (14 * ROWS * HIDDEN + 3 * ROWS)
        assert rows["operations forward"].recorded == FORWARD // 2


def test_tensor_parallel_with_shared_tokens(compared):
    share = 4 * ROWS * HIDDEN // 2
    for rows in compared("tp_sequence"):
        # Two per layer, one for the head, and as many backward. The generator keeps shares, and gathers them again.
        assert (rows["all_gather calls"].recorded, rows["all_gather bytes"].recorded) == (14, 14 * share)
        assert rows["all_gather calls"].terms == {"again for weights": 7}
        assert rows["all_gather bytes"].terms == {"again for weights": 7 * share}
        assert (rows["reduce_scatter calls"].recorded, rows["reduce_scatter bytes"].recorded) == (14, 14 * 2 * share)
        assert not rows["reduce_scatter bytes"].terms
        # Seven norms have two weights each. The generator sums those of a unit at once, and biases and positions with
        # them.
        assert rows["all_reduce calls"].terms == {"of a unit": 5, "of a norm": -14}
        common = 3 * 6 * HIDDEN + 2 * HIDDEN + 16 * HIDDEN
        assert rows["all_reduce bytes"].terms == {"of a unit": 4 * common, "of a norm": -4 * 14 * HIDDEN}
        assert rows["parameters"].terms == {"positions": 16 * HIDDEN // 2}
