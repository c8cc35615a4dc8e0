"""Ranks started by torchrun: process groups, and communications in progress."""

import functools
import os

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

import runtime

_groups = []  # process groups of this rank, in the step's numbering
_works = {}  # communications in progress


def join(folder):
    """Connects to the other ranks and makes the process groups. Returns this rank, and the numbers of its step and
    data.
    """
    words = runtime.Words((folder / "ranks.data").read_text())
    words.word("ranks"), words.word("1"), words.word("groups")
    groups = [words.numbers(words.number()) for _ in range(words.number())]
    words.word("members")
    members = [
        (words.number(), words.number(), words.numbers(words.number())) for _ in range(words.number())
    ]
    size = len(members)
    if os.environ.get("WORLD_SIZE") != str(size) or "RANK" not in os.environ:
        raise SystemExit(f"this is a job of {size} ranks; run torchrun --nproc-per-node={size} benchmark.py")
    if runtime.device().type == "cuda" and runtime.device().index is None:
        runtime.run_on(f"cuda:{os.environ['LOCAL_RANK']}")
        torch.cuda.set_device(runtime.device())
    if os.environ.get("LOCAL_WORLD_SIZE") == str(size) and os.path.exists("/sys/class/net/lo"):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # ranks of one machine use the loopback interface only
    dist.init_process_group("nccl" if runtime.device().type == "cuda" else "gloo")
    # All ranks make all groups, in one order.
    made = [dist.new_group(ranks) for ranks in groups]
    step, data, own = members[dist.get_rank()]
    _groups.extend(made[number] for number in own)
    reduction("SUM")  # imports of torch that do not belong to a step
    return dist.get_rank(), step, data


def meet():
    dist.barrier()


def tell(own):
    """Returns rank 0's value on all ranks."""
    said = torch.tensor([int(own)], device=runtime.device())
    dist.broadcast(said, 0)
    return bool(said.item())


def gather(numbers):
    """Returns the values of all ranks, by rank."""
    own = torch.tensor(numbers, dtype=torch.float64, device=runtime.device())
    told = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(told, own)
    return [one.tolist() for one in told]


def leave():
    dist.barrier()
    dist.destroy_process_group()


@functools.cache
def group(number):
    return _groups[number].boxed()


def group_name(number):
    return _groups[number].group_name


class _Seen(Exception):
    def __init__(self, arguments):
        super().__init__()  # printing it on the way would read tensors
        self.arguments = arguments


class _Watch(TorchDispatchMode):
    """Captures the arguments of a communication instead of calling it."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "c10d":
            raise _Seen(args)
        return func(*args, **(kwargs or {}))


@functools.cache
def reduction(name):
    """Returns a reduction as operators take it; Python cannot make one itself."""
    tensor = torch.ones(1, device=runtime.device())
    try:
        with _Watch():
            dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))
    except _Seen as seen:
        return seen.arguments[2]
    raise SystemExit("this torch has a different communication interface")


_batch = []  # numbers of the works begun since begin_batch


def begin_batch(number):
    """Makes the group run sends and receives up to end_batch as one batch, if it supports this, as NCCL does."""
    _batch.clear()
    if runtime.device().type == "cuda":
        _groups[number]._start_coalescing(runtime.device())


def end_batch(number):
    if runtime.device().type == "cuda":
        work = _groups[number]._end_coalescing(runtime.device())
        _works.update(dict.fromkeys(_batch, work))


def _keep(t, slots, results):
    """Stores the tensors; returns the work handle of the communication."""
    results = results if isinstance(results, tuple) else (results,)
    for slot, tensor in zip(slots, runtime.each(results)):
        if slot is not None:
            t[slot] = tensor
    return dist.Work.unbox(results[-1])


def begin(number, t, slots, results):
    """Begins a communication that continues until wait(number), at the latest until the end of the step."""
    _works[number] = _keep(t, slots, results)
    _batch.append(number)


def finish(t, slots, results):
    """Runs a communication and waits for it."""
    work = _keep(t, slots, results)
    if work is not None:  # NCCL returns none if its stream is the current one
        work.wait()
    runtime.gaps.left()


def wait(number):
    work = _works.pop(number, None)
    if work is not None:
        work.wait()
    runtime.gaps.left()


def wait_for_all():
    for number in list(_works):
        wait(number)
