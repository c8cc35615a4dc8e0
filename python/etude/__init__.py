"""Etude turns a PyTorch job into a benchmark. This package records; torch is imported when needed.

import etude

with etude.record("capture"):
    for batch in batches:
        train(batch)
"""

from .recording.context import RecordingError, RecordingWarning, record

__version__ = "0.1.0"
__all__ = ["RecordingError", "RecordingWarning", "record"]
