"""How benchmarks record a workload, and when they compare it."""

# Steps before what is recorded or compared: the heap has to settle. In the first ones the C library learns which
# blocks to keep, and page faults get fewer.
WARMUP = 20
_TIMED, _RECORDED = 10, 8
# Steps of a program that is recorded so.
STEPS = WARMUP + _TIMED + _RECORDED + 5
# Options of `etude record`.
NATIVE = ["--recorder", "native", "--record-steps", str(_RECORDED), "--warmup", str(WARMUP), "--steps", str(_TIMED)]
OBSERVERS = ["--warmup", str(WARMUP), "--steps", str(_TIMED)]
