"""The end of programs that may be ranks of a job: forked_python.END_OF_RANK says why."""

import pathlib
import sys

import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from forked_python import END_OF_RANK  # noqa: E402

del sys.path[0]


def end_rank():
    """Ends this process if it is a rank, when all ranks have arrived here."""
    if dist.is_initialized():
        exec(END_OF_RANK, {})
