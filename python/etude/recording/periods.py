"""Finds the period of a sequence of events, which defines a step.

A program calls one optimizer (A A A ...), two in turn (D G D G ...), a critic five times for each generator call (C C C
C C G ...), or one optimizer for each parameter. One step is one period. Events are small integers in the order of their
first appearance. The class is independent of time and of torch.
"""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, Optional, Sequence, Set, Tuple

# Events kept while no period is known. Two periods must fit.
_HISTORY_MAX = 16384
# Events (and four times the longest gap between equal events) after which no period is assumed to exist; the most
# frequent event alone then ends a step.
_PATIENCE = 64
# A unit that has not occurred for this many events (and twice its longest gap) is gone.
_GONE = 16
# Events kept while a pattern holds: the start of the next search, if it no longer holds.
_KEPT = 64
# A pattern that was given up this often is rejected.
_RESTARTS_MAX = 3
# This many irregular steps among the last _WINDOW mean that the pattern no longer holds.
_WINDOW = 8
_IRREGULAR_MAX = 4


class PeriodFinder:
    """Cuts a stream of events into periods.

    `pattern` is the sequence of one period, None while it is unknown. `fixed` is False if no period exists and the most
    frequent event ends a step. `periods` counts the complete periods before the pattern was found, `position` the
    events of the current one. Not thread-safe.
    """

    def __init__(self) -> None:
        self.pattern: Optional[Tuple[int, ...]] = None
        self.fixed = True
        self.periods = 0
        self.position = 0
        self._irregular_now = False
        self._last_steps: List[bool] = []
        self._history: List[int] = []
        self._restarts = 0
        self._count = 0
        self._ended_at = 0
        self._last: Dict[int, int] = {}
        self._gaps: Dict[int, int] = {}

    def push(self, unit: int, known: int = 0) -> bool:
        """Adds the next event; returns True if it ends a period.

        `known` is the number of different units, including those that have not occurred yet: a sequence that lacks some
        of them has to repeat longer before it is accepted.
        """
        self._gaps[unit] = max(self._gaps.get(unit, 0), self._count - self._last.get(unit, -1))
        self._last[unit] = self._count
        self._count += 1
        if self.pattern is None:
            return self._learn(unit, known)
        if not self.fixed:
            return unit == self.pattern[0]
        length = len(self.pattern)
        self._remember(unit, max(_KEPT, 2 * length))
        if unit == self.pattern[self.position]:
            self.position += 1
            if self.position < length:
                return False
            return self._end()
        if unit not in self.pattern:
            self._restart()
            return self._learn_again(known)
        self._irregular_now = True
        self.position = self._longest_prefix()
        if self.position == length:
            return self._end()
        if self._count - self._ended_at > 2 * length:
            self._restarts += 1
            self._restart()
        return False

    def _remember(self, unit: int, limit: int) -> None:
        self._history.append(unit)
        if len(self._history) > 2 * limit:
            del self._history[:-limit]

    def _longest_prefix(self) -> int:
        """Returns the length of the longest prefix of the pattern that the latest events match."""
        for size in range(len(self.pattern), 0, -1):
            if tuple(self._history[-size:]) == self.pattern[:size]:
                return size
        return 0

    def _end(self) -> bool:
        self.position = 0
        self._ended_at = self._count
        self._last_steps.append(self._irregular_now)
        del self._last_steps[:-_WINDOW]
        self._irregular_now = False
        if sum(self._last_steps) >= _IRREGULAR_MAX:
            self._restarts += 1
            self._restart()
            return False
        return True

    def _restart(self) -> None:
        self.pattern = None
        self.periods = 0
        self.position = 0
        self._irregular_now = False
        self._last_steps = []

    def _learn(self, unit: int, known: int) -> bool:
        self._history.append(unit)
        if len(self._history) > _HISTORY_MAX:
            del self._history[: _HISTORY_MAX // 2]
        return self._learn_again(known)

    def _learn_again(self, known: int) -> bool:
        count = len(self._history)
        if count > 256 and count % 16:
            return False
        length = self._find(known)
        if length is None:
            return self._give_up()
        latest = tuple(self._history[-length:])
        shift = _smallest_rotation(latest)
        self.pattern = latest[shift:] + latest[:shift]
        self.fixed = True
        self.position = (length - shift) % length
        self.periods = count // length
        self._ended_at = self._count - self.position
        del self._history[: -2 * length]
        return self.position == 0

    def _find(self, known: int) -> Optional[int]:
        """Returns the smallest period of the latest events that contains every unit still in use."""
        history = self._history
        count = len(history)
        units = self._in_use()
        waiting = known > len(self._last)
        repeats = 4 if waiting else 2
        if count == 1 and not waiting and len(units) == 1:
            return 1
        for length in range(len(units), count // repeats + 1):
            # The last two periods are compared first, which rejects nearly all candidates.
            if history[-length:] != history[-2 * length : -length]:
                continue
            if waiting and not _repeats(history, length, repeats):
                continue
            if set(history[-length:]) >= units:
                return length
        return None

    def _in_use(self) -> Set[int]:
        """Returns the units seen so far, except those that stopped occurring."""
        used = set()
        for unit, last in self._last.items():
            if self._since(last) <= max(_GONE, 2 * self._gaps[unit]):
                used.add(unit)
        return used

    def _since(self, last: int) -> int:
        return self._count - 1 - last

    def _give_up(self) -> bool:
        """Uses the most frequent event as the end of a step if there is no period."""
        history = self._history
        count = len(history)
        longest = max(max(self._gaps[u], self._since(self._last[u])) for u in self._in_use())
        if self._restarts < _RESTARTS_MAX and count < max(_PATIENCE, 4 * longest):
            return False
        winner, times = Counter(history).most_common(1)[0]
        self.pattern = (winner,)
        self.fixed = False
        self.periods = times
        return history[-1] == winner


def _repeats(history: Sequence[int], length: int, times: int) -> bool:
    span = length * (times - 1)
    return history[-span:] == history[-span - length : -length]


def _smallest_rotation(sequence: Tuple[int, ...]) -> int:
    """Returns the start of the lexicographically smallest rotation (Booth's algorithm would be linear)."""
    length = len(sequence)
    best = 0
    for start in range(1, length):
        if sequence[start] > sequence[best]:
            continue
        for step in range(length):
            left = sequence[(start + step) % length]
            right = sequence[(best + step) % length]
            if left != right:
                if left < right:
                    best = start
                break
    return best
