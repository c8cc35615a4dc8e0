"""Runs the steps of a program one at a time, on request of `etude compare --run`."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import clock, facts, files, job, process_memory
from .clock import Reading
from .settings import KINDS, Settings
from .signature import Signature, SignatureTable
from .status import Status
from .step_recording import uses_cuda
from .watcher import LEARNING_STEPS, Watcher

# Environment variables: the capture that contains the recorded step, and the number of steps before the first paced
# one.
CAPTURE = "ETUDE_PACE_CAPTURE"
_WARMUP = "ETUDE_PACE_WARMUP"
# In the folder of ETUDE_RECORD_DIR; `etude compare` listens there.
_SOCKET = "pace"
# Exit code if `etude compare` has disappeared.
_ABANDONED = 1
# Exit code after Ctrl-C while waiting for a request.
_INTERRUPTED = 130


class Pacer(Watcher):
    """Stops the program at the end of each step until the next one is requested, and times it.

    Steps are found as in a recording. From the first one on it exchanges lines of JSON with `etude compare`: it sends
    "hello", after the warm-up "ready", and "step" with the figures of a step; it receives "step", "finish" (the program
    continues unobserved) or "end" (the program is left by SystemExit). If the other end has gone, the process ends at
    once. A forked child does nothing.
    """

    def __init__(self, torch: Any, environ: Mapping[str, str]) -> None:
        self._directory = environ["ETUDE_RECORD_DIR"]
        self._warmup = max(1, int(environ.get(_WARMUP, Settings.warmup)))
        self._ranks = (files.read_json(environ[CAPTURE], files.JOB) or {}).get("ranks", {})
        self._kind = self._step_kind()
        super().__init__(torch, self._kind)
        self._table = SignatureTable()
        self._matches: Dict[str, bool] = {}
        self._channel: Optional[_Channel] = None
        self._recorded: Optional[dict] = None
        self._level: Optional[int] = None
        self._steps_seen = 0
        self._warm = False
        self._asked = False
        self._ready = False
        self._closed = False
        self._start: Optional[Reading] = None

    # -- Life ------------------------------------------------------------------------------------

    def attach(self) -> None:
        """Starts observing."""
        super().attach()
        self._finder.modules.on_enter = self._take_level

    def close(self, ended_by: Optional[str] = None) -> None:
        """Called at the program's end."""
        if self._channel is not None and not self._closed:
            with contextlib.suppress(OSError):
                self._channel.send({"event": "end", "steps_seen": self._steps_seen})
        self._detach()

    def failed(self, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        if self._channel is None:
            status = Status(self._directory)
            status.set(code="internal", reason=reason)
            status.write()
        else:
            with contextlib.suppress(OSError):
                self._channel.send({"event": "error", "reason": reason})
        self._detach()

    def _detach(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._finder.detach()
        if self._channel is not None:
            self._channel.close()

    def _cut_off_child(self) -> None:
        """Runs in a forked child: the steps are the parent's."""
        self._detach()

    # -- Steps -----------------------------------------------------------------------------------

    def steps_learnt(self, passed: int) -> None:
        self._steps_seen = max(self._steps_seen, passed)
        self._start = None

    def steps_changed(self, why: str) -> None:
        self._steps_seen = 0
        self._warm = False
        self._start = None

    def profiler_starts(self) -> None:
        self._clean = False

    def step_ended(self, units: Tuple[str, ...], calls: tuple, reading: Reading) -> None:
        self._steps_seen += 1
        if self._start is None:
            return
        if uses_cuda(self._torch):
            self._torch.cuda.synchronize()
            reading = clock.end()
        after = resource.getrusage(resource.RUSAGE_SELF)
        before, start = self._usage, self._start
        signature = self._table.see(units, calls)
        matches = self._match(signature)
        found = {
            "event": "step",
            "counts": self._clean and not self._finder.profilers.busy() and matches,
            "other_signature": None if matches else signature.describe(),
            **reading.since(start).to_json(),
            "involuntary_switches": after.ru_nivcsw - before.ru_nivcsw,
            "peak_resident_bytes": process_memory.peak_resident_bytes() if self._has_peak else None,
        }
        self._start = None
        self._asked = False
        self._tell(found)

    def step_begins(self) -> None:
        if self._channel is None:
            self._connect()
        if not self._warm:
            self._warm_up()
        if not self._warm:
            return
        if not self._asked:
            self._await_turn()
        if self._closed:
            return
        if uses_cuda(self._torch):
            self._torch.cuda.synchronize()
        self._has_peak = process_memory.begin_peak()
        self._clean = not self._finder.profilers.busy()
        self._usage = resource.getrusage(resource.RUSAGE_SELF)
        self._start = clock.begin()

    def _warm_up(self) -> None:
        self._warm = self._steps_seen >= self._warmup
        if self._warm or self._steps_seen == LEARNING_STEPS:
            self._finder.modules.settle()

    def _await_turn(self) -> None:
        if not self._ready:
            self._ready = True
            self._tell(
                {
                    "event": "ready",
                    "steps_seen": self._steps_seen,
                    "threads": facts.threads(self._torch)["intra_op"],
                    "resident_before_steps_bytes": self._level,
                    "machine": facts.machine(self._torch),
                    "versions": facts.versions(self._torch, None),
                    "environment": facts.environment(),
                }
            )
        try:
            word = self._channel.read()
        except KeyboardInterrupt:
            # A traceback would not help, because the program did nothing wrong.
            self._detach()
            raise SystemExit(_INTERRUPTED) from None
        if word == "step":
            self._asked = True
            return
        if word not in ("finish", "end"):
            # The process that started the program was killed.
            os._exit(_ABANDONED)
        self._detach()
        if word == "end":
            raise SystemExit(0)

    def _tell(self, message: Dict[str, Any]) -> None:
        try:
            self._channel.send(message)
        except OSError:
            os._exit(_ABANDONED)

    # -- What was recorded -----------------------------------------------------------------------

    def _step_kind(self) -> str:
        """Returns the kind of mark that ended steps in the recording; no other kind counts."""
        kinds = {entry.get("step_kind") for entry in self._ranks.values()}
        return kinds.pop() if len(kinds) == 1 and kinds <= set(KINDS) else "auto"

    def _match(self, signature: Signature) -> bool:
        """Returns whether the step is of the recorded kind."""
        if signature.id not in self._matches:
            entry = signature.to_json()
            same = self._recorded is not None and all(
                entry[name] == self._recorded.get(name) for name in ("units", "calls")
            )
            self._matches[signature.id] = same
        return self._matches[signature.id]

    def _connect(self) -> None:
        rank, world = job.rank_and_world(self._torch)
        self._recorded = _recorded_signature(self._ranks.get(str(rank), {}))
        self._channel = _Channel(os.path.join(self._directory, _SOCKET))
        self._channel.send(
            {
                "event": "hello",
                "rank": rank,
                "world_size": world,
                "has_recorded_step": self._recorded is not None,
            }
        )

    def _take_level(self, module: Any) -> None:
        """At the first call of an outermost module, stores the memory in use before the first step.

        If optimizers end steps, calls before the first optimizer exists belong to the construction of the model.
        """
        if self.is_idle():
            self._level = process_memory.resident_bytes()
        if self._kind != "optimizer" or self._finder.optimizers.known() > 0:
            self._finder.modules.on_enter = None


class _Channel:
    """Lines to and from `etude compare`. Raises OSError."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._received = b""

    def send(self, message: Dict[str, Any]) -> None:
        """Sends a message without its unknown members."""
        known = {name: value for name, value in message.items() if value is not None}
        self._socket.sendall(json.dumps(known).encode() + b"\n")

    def read(self) -> str:
        """Returns the next line; "" if the other end has gone."""
        while b"\n" not in self._received:
            try:
                part = self._socket.recv(4096)
            except ConnectionError:
                part = b""
            if not part:
                return ""
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        self._socket.close()


def _recorded_signature(entry: dict) -> Optional[dict]:
    """Returns the signature of the recorded step in a rank's entry of job.json."""
    signatures: List[dict] = [one for one in entry.get("signatures", []) if one.get("recorded")]
    # With several signatures, the one that the replay also runs.
    main = entry.get("recorded_step", {}).get("signature")
    return next((one for one in signatures if one.get("id") == main), signatures[0] if signatures else None)
