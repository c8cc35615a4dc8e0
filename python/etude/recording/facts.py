"""Facts about the machine, the versions and the state of torch. Unknown facts are omitted."""

from __future__ import annotations

import hashlib
import os
import platform
from typing import Any, Callable, Dict, Optional

# Variables that affect the speed of torch. Others may contain secrets and are never recorded.
_VARIABLES = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "GLIBC_TUNABLES",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_WAIT_POLICY",
    "ONEDNN_MAX_CPU_ISA",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "THP_MEM_ALLOC_ENABLE",
    "TORCHDYNAMO_DISABLE",
    "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE",
    "TORCH_COMPILE_DISABLE",
)


_KERNEL_PROFILE = "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE"


def versions(torch: Any, etude_version: Optional[str]) -> dict:
    """Returns the versions of etude, Python, torch and, if available, CUDA, cuDNN and NCCL."""
    found = {
        "etude": etude_version,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cuda": _ask(lambda: torch.version.cuda),
        "hip": _ask(lambda: torch.version.hip),
    }
    if _ask(torch.cuda.is_available):
        found["cudnn"] = _ask(torch.backends.cudnn.version)
        found["nccl"] = _ask(lambda: ".".join(str(part) for part in torch.cuda.nccl.version()))
    return _known(found)


def machine(torch: Any) -> dict:
    """Returns CPU model, cores (of the machine, and usable by the process), memory in bytes, kernel, CPU frequency
    governor, and GPUs.
    """
    found: Dict[str, Any] = {
        "cpu": _cpu_model(),
        "architecture": platform.machine() or None,
        "cores": os.cpu_count(),
        "usable_cores": _ask(lambda: len(os.sched_getaffinity(0))),
        "memory_bytes": _ask(lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        "system": platform.system() + " " + platform.release(),
        "governor": _ask(_governors),
        "gpus": _gpus(torch),
    }
    return _known(found)


def clock() -> Optional[str]:
    """Returns an identifier of this process's clock: equal for all processes of a running machine, and unique among
    machines.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except (OSError, UnicodeDecodeError):
        return None
    return hashlib.sha256(f"etude clock {boot}".encode()).hexdigest()[:16]


def threads(torch: Any) -> dict:
    """Returns the sizes of torch's two thread pools."""
    return {"intra_op": torch.get_num_threads(), "inter_op": torch.get_num_interop_threads()}


def state(torch: Any) -> dict:
    """Returns settings of torch that affect the choice or the speed of kernels."""
    backends = torch.backends
    found = {
        "default_dtype": str(torch.get_default_dtype()).replace("torch.", ""),
        "float32_matmul_precision": _ask(torch.get_float32_matmul_precision),
        "deterministic": _ask(torch.are_deterministic_algorithms_enabled),
        "flush_denormal": _ask(lambda: _flushes_denormals(torch)),
        "mkldnn": _ask(lambda: bool(backends.mkldnn.enabled)),
        "cudnn_enabled": _ask(lambda: bool(backends.cudnn.enabled)),
        "cudnn_benchmark": _ask(lambda: bool(backends.cudnn.benchmark)),
        "cudnn_deterministic": _ask(lambda: bool(backends.cudnn.deterministic)),
        "cudnn_allow_tf32": _ask(lambda: bool(backends.cudnn.allow_tf32)),
        "matmul_allow_tf32": _ask(lambda: bool(backends.cuda.matmul.allow_tf32)),
        "flash_sdp": _ask(backends.cuda.flash_sdp_enabled),
        "mem_efficient_sdp": _ask(backends.cuda.mem_efficient_sdp_enabled),
        "math_sdp": _ask(backends.cuda.math_sdp_enabled),
        "environment": environment(),
    }
    return _known(found)


def environment() -> dict:
    """Returns the variables that affect the speed of torch."""
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}


def modes(torch: Any) -> dict:
    """Returns the modes at a call of an outermost module: gradients, inference, autocast."""
    found: Dict[str, Any] = {
        "grad": torch.is_grad_enabled(),
        "inference": _ask(torch.is_inference_mode_enabled),
        "autocast": {},
    }
    for device in ("cpu", "cuda"):
        if _ask(lambda device=device: torch.is_autocast_enabled(device)):
            dtype = torch.get_autocast_dtype(device)
            found["autocast"][device] = str(dtype).replace("torch.", "")
    return _known(found)


def compiled_frames() -> int:
    """Returns the number of frames compiled by torch.compile so far, without loading the compiler."""
    import sys

    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", None)
    if counters is None:
        return 0
    # PyTorch 2.13 counts only a part of the frames.
    known = [(group, name) for group, name in (("frames", "ok"), ("stats", "unique_graphs")) if group in counters]
    return max((int(counters[group].get(name, 0)) for group, name in known), default=0)


def has_compiled_kernels() -> bool:
    """Returns whether torch.compile has made kernels that PyTorch does not report: those for the CPU. Triton kernels
    are in traces.

    Does not load the compiler. If the cache of such kernels is not found, compiled code is assumed to have some.
    """
    import sys

    if "torch._inductor.compile_fx" not in sys.modules or compiled_frames() == 0:
        return False
    made = sys.modules.get("torch._inductor.codecache")
    caches = [
        getattr(getattr(made, name, None), "cache", None)
        for name in ("CppPythonBindingsCodeCache", "CppWrapperCodeCache")
    ]
    return any(cache is None or len(cache) > 0 for cache in caches)


def compiler_notes() -> list:
    """Returns notes on torch.compile in this process."""
    if os.environ.get("TORCH_COMPILE_DISABLE") == "1":
        return ["torch.compile was disabled: the steps ran without it"]
    if has_compiled_kernels() and os.environ.get(_KERNEL_PROFILE) != "1":
        return [
            "kernels that torch.compile generated for the CPU are missing in the trace: "
            f"{_KERNEL_PROFILE}=1 records their names and times, --eager records the operators instead"
        ]
    return []


def _flushes_denormals(torch: Any) -> bool:
    with torch.no_grad():
        return bool((torch.full((1,), 1e-40, dtype=torch.float32, device="cpu") * 1.0).item() == 0)


def _gpus(torch: Any) -> Optional[list]:
    if not _ask(torch.cuda.is_available) or not torch.cuda.is_initialized():
        return None
    found = []
    for index in range(torch.cuda.device_count()):
        device = torch.cuda.get_device_properties(index)
        found.append(
            {
                "name": device.name,
                "memory_bytes": device.total_memory,
                "capability": f"{device.major}.{device.minor}",
            }
        )
    return found


def _cpu_model() -> Optional[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or None


def _governors() -> Optional[str]:
    """Returns the frequency governor of the usable cores: "performance"; "a/b" if they differ."""
    found = set()
    for core in os.sched_getaffinity(0):
        with open(f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor", encoding="ascii") as file:
            found.add(file.read().strip())
    return "/".join(sorted(found)) or None


def _ask(question: Callable[[], Any]) -> Any:
    """Returns the answer; None if this torch does not support the question."""
    try:
        return question()
    except Exception:
        return None


def _known(found: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in found.items() if value is not None}
