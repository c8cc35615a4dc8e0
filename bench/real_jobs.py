"""Shapes and plans for steps of a small GPT, which bench/real_programs.py records and `etude generate llm`
generates."""

import dataclasses

RANKS = 2


@dataclasses.dataclass(frozen=True)
class Shapes:
    layers: int = 3
    hidden: int = 32
    heads: int = 4
    ffn: int = 128
    vocabulary: int = 500
    sequence: int = 16
    sequences: int = 3  # per micro-batch
    fused: bool = True
    tied: bool = False

    def toml(self):
        return f"""format = "etude-model"
version = 1

[model]
layers = {self.layers}
hidden = {self.hidden}
heads = {self.heads}
ffn = {self.ffn}
vocabulary = {self.vocabulary}
sequence = {self.sequence}
positions = {self.sequence}
gated = false
biases = true
norm = "layer"
tied = {str(self.tied).lower()}
weights = "float32"
"""


@dataclasses.dataclass(frozen=True)
class Job:
    program: str  # function of bench/real_programs.py
    arguments: dict  # of this function
    options: list  # of `etude generate llm`
    shapes: Shapes = Shapes()


SCHEDULES = {"gpipe": "ScheduleGPipe", "1f1b": "Schedule1F1B", "interleaved": "ScheduleInterleaved1F1B"}


def pipeline(schedule, chunks=1, **shapes):
    arguments = {"schedule": SCHEDULES[schedule], "micro_batches": 4, "chunks": chunks}
    options = ["--pp", RANKS, "--micro-batches", 4, "--schedule", schedule]
    return Job("pipeline", arguments, options + (["--chunks", chunks] if chunks > 1 else []), Shapes(**shapes))


BUCKET = 100_000
JOBS = {
    "alone": Job("alone", {}, []),
    "unfused": Job("alone", {"micro_batches": 2}, ["--micro-batches", 2], Shapes(fused=False, tied=True)),
    "ddp": Job("data_parallel", {"bucket_bytes": BUCKET}, ["--dp", RANKS, "--bucket", f"{BUCKET}B"]),
    "ddp_default": Job(
        "data_parallel", {}, ["--dp", RANKS, "--first-bucket", "1MiB"], Shapes(hidden=128, ffn=512, vocabulary=1000)
    ),
    "ddp_weights": Job("data_parallel", {"bucket_bytes": 1}, ["--dp", RANKS, "--bucket", "1B"]),
    "fsdp": Job("sharded", {}, ["--dp", RANKS, "--zero", 3, "--keep-ends"]),
    "fsdp_ends": Job("sharded", {"ends": True}, ["--dp", RANKS, "--zero", 3], Shapes(vocabulary=501)),
    "fsdp_tied": Job(
        "sharded", {"micro_batches": 2}, ["--dp", RANKS, "--zero", 3, "--micro-batches", 2], Shapes(tied=True)
    ),
    "gpipe": pipeline("gpipe"),
    "1f1b": pipeline("1f1b"),
    "interleaved": pipeline("interleaved", chunks=2, layers=5),
    "tp": Job("tensor_parallel", {}, ["--tp", RANKS, "--no-sequence-parallel"]),
    "tp_sequence": Job("tensor_parallel", {"sequence": True}, ["--tp", RANKS]),
}
