"""Building blocks of a step's code (step.py), and the memory that it works on (step.data)."""

import ctypes
import math
import mmap
import sys
import time

import torch

FORMS = []  # tensor forms: type, offset, sizes, strides
TABLES = []  # numbers that follow no formula
_device = [torch.device("cpu")]


def device():
    return _device[0]


def run_on(name):
    """Selects the device of all tensors; RuntimeError if it cannot hold values."""
    _device[0] = torch.device(name)
    try:
        torch.zeros(1, device=_device[0]).cpu()
    except (RuntimeError, AssertionError, ImportError) as error:
        raise RuntimeError(f"--device {name}: {str(error).partition('. ')[0]}") from None


class Words:
    """Reads the words of step.data in order."""

    def __init__(self, text):
        self._words = iter(text.split())

    def word(self, expected=None):
        word = next(self._words, None)
        if word is None:
            raise SystemExit("step.data ends early")
        if expected is not None and word != expected:
            raise SystemExit(f"step.data: found {word}, expected {expected}")
        return word

    def number(self):
        return int(self.word())

    def numbers(self, count):
        return [int(self.word()) for _ in range(count)]


class Gaps:
    """Time between two operators of the original program, in nanoseconds: first while it waited, then while the
    processor was busy with something else.

    Python's own time between two calls, and within each call before the operator, counts as part of the gap. Excess
    time is subtracted from the next gaps.
    """

    def __init__(self):
        self._rows = []  # before each call, and after the last; empty: no gaps
        self._next = 0
        self._left = self._debt = self._call = 0
        self.idle = self.busy = 0

    def read(self, text):
        words = Words(text)
        words.word("gaps"), words.word("1"), words.word("calls")
        self._rows = [(words.number(), words.number()) for _ in range(words.number() + 1)]
        self._call = _cost_of_a_call()

    def any(self):
        return bool(self._rows)

    def begin_step(self):
        self._next = self._debt = self.idle = self.busy = 0
        self.left()

    def left(self):
        """Marks the return of an operator, or the end of a wait for a communication."""
        self._left = time.perf_counter_ns()

    def pass_next(self, calls=1):
        """Passes the next gap, before `calls` calls."""
        if self._next >= len(self._rows):
            return
        idle, busy = self._rows[self._next]
        self._next += 1
        now = begin = time.perf_counter_ns()
        if idle and self._left + idle > now:
            time.sleep((self._left + idle - now) / 1e9)
            now = time.perf_counter_ns()
            self.idle += now - begin
            begin = now
        busy -= self._debt + calls * self._call
        end = self._left + idle + busy
        self._debt = max(now - end, 0)
        while now < end:
            then, now = now, time.perf_counter_ns()
            away = now - then
            if away > 100_000:  # another thread ran in between: that time did not pass in the original program
                begin += away
                end += away
        self.busy += now - begin

    def around(self, function):
        """Returns the function with the gap before it."""
        def run(*args, **kwargs):
            self.pass_next()
            result = function(*args, **kwargs)
            self._left = time.perf_counter_ns()
            return result

        return run


def _cost_of_a_call():
    """Measures Python's time in a call before and after the operator, with an operator that does next to nothing."""
    tensor, times, many = torch.zeros(4, 4), [], 200
    for _ in range(20):
        begin = time.perf_counter_ns()
        for _ in range(many):
            torch.ops.aten.view.default(tensor, [16])
        times.append((time.perf_counter_ns() - begin) // many)
    return min(times)


class _Operators:
    """torch.ops, or a part of it, whose operators pass their gap first."""

    def __init__(self, part, depth):
        self._part, self._depth = part, depth

    def __getattr__(self, name):
        found = getattr(self._part, name)
        found = gaps.around(found) if self._depth == 2 else _Operators(found, self._depth + 1)
        setattr(self, name, found)
        return found


gaps = Gaps()
ops = torch.ops  # used by the step


def pass_gaps(text):
    """Passes gaps from now on, as listed in gaps.data."""
    global ops
    gaps.read(text)
    ops = _Operators(torch.ops, 0)


def each(results):
    """Yields the tensors among the results of an operator, with lists flattened."""
    if isinstance(results, (list, tuple)):
        for result in results:
            yield from each(result)
    elif results is None or isinstance(results, torch.Tensor):
        yield results


def empty(t, slots):
    for slot in slots:
        t[slot] = None


def view(base, form):
    """Makes a tensor of this form on the memory of another one."""
    dtype, offset, sizes, strides = form
    return torch.empty(0, dtype=dtype, device=base.device).set_(
        base.untyped_storage(), offset, sizes, strides)


def fit(tensor, form):
    """Converts the tensor to this type and these sizes: its first elements, repeated as needed."""
    dtype, _, sizes, _ = form
    if list(tensor.shape) != sizes:
        wanted, flat = math.prod(sizes), tensor.reshape(-1)
        if flat.numel() == 0:
            return torch.zeros(sizes, dtype=dtype, device=tensor.device)
        times = -(-wanted // flat.numel())
        tensor = flat.repeat(times)[:wanted].reshape(sizes)
    return tensor.to(dtype)


def copy_bytes(to, source):
    to, source = to.untyped_storage(), source.untyped_storage()
    count = min(to.nbytes(), source.nbytes())
    whole = lambda storage: torch.empty(0, dtype=torch.uint8, device=storage.device).set_(
        storage, 0, (count,), (1,))
    whole(to).copy_(whole(source))


def zipf(count, low, high, exponent, generator):
    """Returns integers in [low, high), the n-th most frequent with a share proportional to n^-exponent."""
    width = max(high - low, 1)
    if exponent <= 0 or width == 1:
        return torch.randint(low, low + width, (count,), generator=generator)
    weights = torch.arange(1, width + 1, dtype=torch.float64) ** -exponent
    sums = torch.cumsum(weights, 0)
    drawn = torch.rand(count, dtype=torch.float64, generator=generator) * sums[-1]
    ranks = torch.searchsorted(sums, drawn).clamp(max=width - 1)
    stride = width // 2 + 1
    while math.gcd(stride, width) != 1:
        stride += 1
    return low + ranks * stride % width


def filled(count, dtype, fill, real, low, high, generator):
    """Returns a CPU tensor of `count` elements, filled as step.data describes."""
    if fill == "normal":
        # Repeats a block with a prime number of values.
        block = torch.empty(min(count, 65521)).normal_(0, real, generator=generator)
        return block.repeat(-(-count // max(block.numel(), 1)))[:count].to(dtype)
    if fill == "uniform":
        return torch.empty(count).uniform_(0.5, 1.0, generator=generator).to(dtype)
    if fill == "bytes":
        return torch.randint(0, 128, (count,), generator=generator).to(dtype)
    if fill == "index":
        return zipf(count, low, high, real, generator).to(dtype)
    if fill in ("offsets", "steps"):
        parts = max(count - low, 1)
        offsets = torch.tensor([high * i // parts for i in range(count)], dtype=torch.int64)
        if fill == "steps":
            offsets[1:] -= offsets[:-1].clone()
        return offsets.to(dtype)
    if fill == "lengths":
        first = min(low, high)
        rest = count - 1
        share = [(high - first) // rest + (i < (high - first) % rest) for i in range(rest)]
        return torch.tensor([first] + [min(s, first) for s in share][:rest]).to(dtype)
    if fill == "mask":
        mask = torch.zeros(count, dtype=torch.bool)
        mask[torch.randperm(count, generator=generator)[: min(high, count)]] = True
        return mask.to(dtype)
    if fill == "distinct":
        return (low + torch.arange(count) * max(high - low, 1) // max(count, 1)).to(dtype)
    if fill == "coin":
        return torch.randint(0, 2, (count,), generator=generator).to(dtype)
    return torch.full((count,), 1.0 if dtype.is_floating_point else low).to(dtype)


def set_heap(map_threshold, keeps_freed, given_back):
    """Makes glibc's heap behave like the original program's."""
    if not map_threshold:
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    trim_threshold, map_blocks_from, most_mapped = -1, -3, -4
    mallopt(map_blocks_from, map_threshold)
    mallopt(trim_threshold, 2 * map_threshold)
    if keeps_freed:
        mallopt(trim_threshold, 2**31 - 1)
        mallopt(most_mapped, 0)
        freed_pages.per_step = given_back


class FreedPages:
    """Returns pages of tensors that a step frees to the system: those that the original program's heap returned."""

    LEAST = 64 << 10  # bytes of a block

    def __init__(self):
        self.per_step = 0  # bytes
        self.left = 0  # bytes of this step
        try:
            self._madvise = ctypes.CDLL(None).madvise
            self._madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
            self._users_of = torch._C._storage_Use_Count  # not public: without it, no pages are returned
        except (OSError, AttributeError):
            self._madvise = None

    def begin_step(self):
        self.left = self.per_step if self._madvise is not None else 0

    def give_back(self, tensor):
        """Returns the pages of a tensor whose last reference is in the slot that is about to be emptied."""
        if not isinstance(tensor, torch.Tensor) or tensor.device.type != "cpu" or tensor.layout != torch.strided:
            return
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        # References to the tensor: the slot, this function's argument and getrefcount's. To the storage: the tensor,
        # and the object in `storage`.
        if size < self.LEAST or sys.getrefcount(tensor) > 3 or self._users_of(storage._cdata) > 2:
            return
        page = mmap.PAGESIZE
        begin = -(-storage.data_ptr() // page) * page
        length = min((storage.data_ptr() + size) // page * page - begin, self.left // page * page)
        self.left -= size
        if length > 0:
            self._madvise(begin, length, mmap.MADV_DONTNEED)


freed_pages = FreedPages()


class Slots(list):
    """Slots of tensors that return pages when a slot is emptied."""

    def __setitem__(self, slot, value):
        if freed_pages.left > 0:
            freed_pages.give_back(self[slot])
        super().__setitem__(slot, value)


def give_back_free():
    """Returns glibc heap memory left over from the setup to the system."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        pass


class Memory:
    """Memory that exists before the step: tensors in their slots, and copies of the bytes that a step changes."""

    def __init__(self, text, seed):
        words = Words(text)
        words.word("benchmark"), words.word("3")
        words.word("covers")
        self.operators, self.operators_run, time = words.number(), words.number(), words.word()
        self.time_coverage = None if time == "unknown" else float(time)
        words.word("threads")
        self.threads = words.number()
        words.word("heap")
        set_heap(*words.numbers(3))
        words.word("slots")
        slots = [None] * words.number()
        self.slots = Slots(slots) if freed_pages.per_step > 0 else slots
        words.word("forms")
        for _ in range(words.number()):
            dtype, offset, rank = getattr(torch, words.word()), words.number(), words.number()
            FORMS.append((dtype, offset, words.numbers(rank), words.numbers(rank)))
        generator = torch.Generator().manual_seed(seed)
        self._restored = []
        self.state_bytes = 0  # made by the original program in its first step
        words.word("memory")
        for _ in range(words.number()):
            self._make(words, generator)
        words.word("numbers")
        for _ in range(words.number()):
            slot, kind, value = words.number(), words.word(), words.word()
            self.slots[slot] = {"float": float, "int": int, "bool": lambda v: v != "0"}[kind](value)
        words.word("released")
        self.released = words.numbers(words.number())
        words.word("tables")
        for _ in range(words.number()):
            TABLES.append(words.numbers(words.number()))
        give_back_free()

    def _make(self, words, generator):
        size, dtype, fill = words.number(), getattr(torch, words.word()), words.word()
        real, low, high, restored = float(words.word()), words.number(), words.number(), words.number()
        self.state_bytes += size if words.number() else 0
        whole = torch.empty(max(size, 0), dtype=torch.uint8, device=_device[0])
        count = size // dtype.itemsize
        if count > 0:
            values = filled(count, dtype, fill, real, low, high, generator)
            whole[: count * dtype.itemsize].view(dtype).copy_(values)
        if restored:
            self._restored.append((whole, whole.clone()))
        for _ in range(words.number()):
            slot, form = words.number(), words.number()
            self.slots[slot] = view(whole, FORMS[form])

    def restore(self):
        for whole, original in self._restored:
            whole.copy_(original)
