"""How benchmarks record and compare workloads."""

# Steps before the recorded or compared ones, in which the heap settles. In the first steps the C library learns which
# blocks to keep, and the number of page faults falls.
WARMUP = 20
_TIMED, _RECORDED = 10, 8
# Steps of a program that is recorded in this way.
STEPS = WARMUP + _TIMED + _RECORDED + 5
# Options of `etude record`.
NATIVE = ["--recorder", "native", "--record-steps", str(_RECORDED), "--warmup", str(WARMUP), "--steps", str(_TIMED)]
OBSERVERS = ["--recorder", "observers", "--warmup", str(WARMUP), "--steps", str(_TIMED)]

# The C library's heap, the same from start to start: it keeps freed memory and maps nothing up to 32 MiB. The default
# heap adapts, and each start of a program or its replay decides whether a step has thousands of page faults or none.
STEADY_HEAP = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
