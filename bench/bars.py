"""Bars of measurements, and whether they are met.

Each command of this folder adds its bars to one `Bars` and ends with `close()`, which prints them. It also writes
them as JSON to the file that the variable ETUDE_BARS names, from which `bench/status` collects them.
"""

import json
import math
import os

MET, MISSED, UNDETERMINED, UNKNOWN = "met", "missed", "undetermined", "unknown"
VERDICTS = (MET, MISSED, UNDETERMINED, UNKNOWN)


def judge(low, high, least=None, most=None):
    """Returns met if all of [low, high] is within the bar, missed if nothing of it is, else undetermined."""
    if low is None or high is None:
        return UNKNOWN
    above = least is None or low >= least
    below = most is None or high <= most
    if above and below:
        return MET
    outside = (least is not None and high < least) or (most is not None and low > most)
    return MISSED if outside else UNDETERMINED


def median_interval(values):
    """Returns bounds of the median, at least 95 %, by the signs of differences from it (order statistics; Conover
    1999, section 3.2). For fewer than six values these are minimum and maximum, which is less certain."""
    values = sorted(values)
    below, left = 0.0, 0
    while True:
        below += math.comb(len(values), left) / 2 ** len(values)
        if below > 0.025 or left >= len(values) // 2:
            break
        left += 1
    left = max(left, 1)
    return values[left - 1], values[-left]


class Bars:
    def __init__(self):
        self.rows = []

    def add(self, what, value, spread=None, *, least=None, most=None, unit="", digits=2, note=""):
        """Adds a bar. `value` must be at least `least` or at most `most`. `spread` is its minimum and maximum, by
        which it is judged; None: it is exact. An unknown value is None, and `note` gives the reason."""
        low, high = (value, value) if spread is None else spread

        def text(number):
            return "unknown" if number is None else f"{number:,.{digits}f}" + (f" {unit}" if unit else "")

        figure = text(value)
        if spread is not None and value is not None:
            figure += f" [{low:,.{digits}f}, {high:,.{digits}f}]"
        bar = f"≥ {least:,g}" if least is not None else f"≤ {most:,g}"
        self.verdict(what, f"{bar} {unit}".rstrip(), figure, judge(low, high, least, most), note)

    def verdict(self, what, bar, figure, verdict, note=""):
        """Adds a bar that is judged elsewhere."""
        self.rows.append({"what": what, "bar": bar, "figure": figure, "verdict": verdict, "note": note})

    def close(self):
        print("bars:")
        for row in self.rows:
            note = f" ({row['note']})" if row["note"] else ""
            print(f"  {row['verdict']:12} {row['what']}: {row['figure']}, bar {row['bar']}{note}")
        if "ETUDE_BARS" in os.environ:
            with open(os.environ["ETUDE_BARS"], "w") as file:
                json.dump(self.rows, file, indent=1, ensure_ascii=False)
