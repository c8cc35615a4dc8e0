"""Counts the arrows of a timeline by the tracks at their begin and end."""

import collections
import json
import sys

events = json.load(open(sys.argv[1]))["traceEvents"]
track = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
begins = {e["id"]: track[e["pid"], e["tid"]] for e in events if e["ph"] == "s"}
ends = [(begins[e["id"]], track[e["pid"], e["tid"]]) for e in events if e["ph"] == "f"]
for (begin, end), count in sorted(collections.Counter(ends).items()):
    print(f"{count} from {begin} to {end}")
