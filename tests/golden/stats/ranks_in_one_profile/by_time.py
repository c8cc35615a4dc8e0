"""The profile with its events in the order of time."""

import json
import sys

trace = json.load(open(sys.argv[1]))
trace["traceEvents"].sort(key=lambda event: event["ts"])
print(json.dumps(trace))
