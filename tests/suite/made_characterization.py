"""Made-up characterizations of the suite: plausible figures that were not measured."""

import json
import pathlib
import random
import sys

CATEGORIES = ("convolution", "GEMM", "batch normalization", "element-wise", "ReLU", "pooling", "memory copy", "data arrangement")
# Parameters, FLOP a step, bytes a step, batch, samples, evaluation interval, epochs, their relative spread, weights of CATEGORIES.
TASKS = {
    "image-classification": (174970, 2.1e10, 2.4e8, 64, 4000, 5, 5.4, 0.02, (60, 2, 14, 8, 10, 1, 3, 2)),
    "image-generation": (110000, 9.0e9, 1.6e8, 64, 4000, 62, 20, 0.15, (55, 1, 12, 15, 6, 0, 4, 7)),
    "text-to-text": (890000, 1.9e10, 2.9e8, 64, 9000, 50, 3.5, 0.05, (0, 55, 0, 22, 4, 0, 8, 11)),
    "image-to-text": (310000, 1.1e10, 1.2e8, 64, 16000, 25, 2.2, 0.03, (40, 28, 6, 12, 6, 2, 3, 3)),
    "image-to-image": (240000, 5.5e10, 6.2e8, 8, 600, 75, 6, 0.2, (70, 0, 0, 16, 5, 0, 4, 5)),
    "speech-recognition": (390000, 2.6e10, 5.0e8, 32, 6000, 40, 1.6, 0.4, (12, 52, 4, 18, 2, 0, 5, 7)),
    "object-detection": (260000, 3.3e10, 3.6e8, 16, 2000, 25, 2.5, 0.08, (58, 6, 0, 12, 9, 3, 4, 8)),
    "recommendation": (150000, 2.0e8, 2.2e7, 256, 60000, 120, 9.3, 0.18, (0, 30, 0, 30, 3, 0, 10, 27)),
    "summarization": (1900000, 2.9e10, 7.5e8, 32, 50000, 100, 1.9, 0.09, (0, 60, 0, 20, 0, 0, 9, 11)),
    "spatial-transformer": (27360, 4.5e8, 4.1e7, 64, 4000, 100, 15, 0.12, (48, 12, 0, 18, 6, 8, 3, 5)),
    "learning-to-rank": (120000, 6.1e8, 5.5e7, 256, 50000, 4, 1.25, 0.03, (20, 25, 0, 25, 4, 2, 8, 16)),
    "advertising": (95000, 1.2e8, 1.6e7, 128, 100000, 150, 1.7, 0.45, (0, 45, 0, 20, 8, 0, 7, 20)),
}  # fmt: skip


def characterization(seed=1, counters=False, noise=0.0):
    """Returns the document; `noise` changes the figures of the tasks relatively."""
    draw = random.Random(seed)
    tasks = []
    for name, (parameters, flop, size, batch, samples, every, epochs, spread, weights) in TASKS.items():
        change = lambda value: value * (1 + noise * draw.uniform(-1, 1))  # noqa: E731
        parts = [change(weight) for weight in weights]
        runs = []
        for number in range(1, 6):
            steps = max(1, round(draw.gauss(epochs, spread * epochs) * samples / batch / every)) * every
            runs.append({"seed": number, "reached": True, "epochs": steps * batch / samples, "steps": steps, "seconds": steps * 0.02,
                         "evaluate_every": every})  # fmt: skip
        tasks.append({
            "id": name, "aibench": "", "data_set": None, "parameters": parameters, "batch": batch, "samples": samples,
            "optimizer": "adam 0.002", "loss": "", "blocks": [], "layers": [],
            "step": {"seconds": 0.02, "flop": change(flop), "bytes": change(size), "operators": 100, "without_shapes": 0, "tensor_bytes": 1},
            "hot_spots": {"half": 2, "most": 9, "categories": {key: part / sum(parts) for key, part in zip(CATEGORIES, parts) if part},
                          "operators": []},
            "parallel": {"threads": 2, "one_thread_seconds": 0.02, "seconds": 0.0125, "efficiency": round(draw.uniform(0.4, 0.95), 3)},
            "counters": {"instructions": 1e9, "cycles": change(6e8), "cache_misses": change(2e6), "branch_misses": change(1e6)} if counters else None,
            "why_no_counters": None if counters else "the machine has no counters", "peak_bytes": 3 * 10**8, "runs": runs})  # fmt: skip
    return {"format": "etude-suite-characterization", "version": 1, "scale": "smoke", "machine": {}, "torch": "2.13.0", "device": "cpu",
            "threads": 1, "peaks": {"flop_per_s": 5e10, "bytes_per_s": 1e10}, "tasks": tasks}  # fmt: skip


def write(folder, document):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "characterization.json").write_text(json.dumps(document))
    return folder


if __name__ == "__main__":
    write(sys.argv[1], characterization())
