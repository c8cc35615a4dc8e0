"""How benchmarks record a workload, and when they compare it."""

# Steps before what is recorded or compared: the heap has to settle. In the first ones the C library learns which
# blocks to keep, and page faults get fewer.
WARMUP = 20
_TIMED, _RECORDED = 10, 8
# Steps of a program that is recorded so.
STEPS = WARMUP + _TIMED + _RECORDED + 5
# Options of `etude record`.
NATIVE = ["--recorder", "native", "--record-steps", str(_RECORDED), "--warmup", str(WARMUP), "--steps", str(_TIMED)]
OBSERVERS = ["--recorder", "observers", "--warmup", str(WARMUP), "--steps", str(_TIMED)]

# The C library's heap, the same from start to start: it keeps what is freed and maps nothing up to 32 MiB. Left to itself it adapts, and
# whether a step has thousands of page faults or none is decided anew whenever a program or its replay starts.
STEADY_HEAP = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
