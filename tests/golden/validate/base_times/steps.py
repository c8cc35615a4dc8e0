"""Prints the begin of each rank's step on a timeline, in microseconds from the first."""

import json
import sys

events = json.load(open(sys.argv[1]))["traceEvents"]
begins = {e["pid"]: e["ts"] for e in events if e["ph"] == "X" and e["name"].startswith("ProfilerStep")}
print({rank: round(begin - min(begins.values()), 3) for rank, begin in sorted(begins.items())})
