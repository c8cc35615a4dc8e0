"""Finding steps from the sequence of marks."""

import importlib
import random
import sys

import pytest
from conftest import PYTHON_FOLDER

sys.path.insert(0, str(PYTHON_FOLDER))
PeriodFinder = importlib.import_module("etude.recording.periods").PeriodFinder


def cut(sequence, known=0):
    """Returns the finder after the sequence, and where it saw a period end."""
    finder = PeriodFinder()
    ends = [place for place, unit in enumerate(sequence) if finder.push(unit, known)]
    return finder, ends


def test_one_optimizer_ends_a_step_each_time():
    finder, ends = cut([0] * 4)
    assert finder.pattern == (0,)
    assert ends == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "period",
    [(0, 1), (0, 1, 2), (0, 0, 0, 0, 0, 1), (0, 1, 0, 2), (0, 1, 1), tuple(range(200))],
)
def test_period_is_found_and_cut_at_its_end(period):
    finder, ends = cut(list(period) * 6, known=len(set(period)))
    assert finder.pattern == period
    assert ends[-2:] == [len(period) * 5 - 1, len(period) * 6 - 1]


def test_an_optimizer_that_exists_is_waited_for():
    finder, ends = cut([0, 0, 0], known=2)
    assert finder.pattern is None and ends == []


def test_an_optimizer_that_never_steps_does_not_stop_the_rest():
    assert cut([0] * 6, known=2)[0].pattern == (0,)


def test_a_long_start_with_one_optimizer_is_overcome():
    finder, _ = cut(([0] * 100 + [1]) * 3 + [0, 0, 0, 0, 0, 1] * 60, known=2)
    assert finder.pattern == (0, 0, 0, 0, 0, 1)


def test_a_skipped_call_makes_one_irregular_step_only():
    finder, ends = cut([0, 1] * 5 + [0] + [0, 1] * 5)
    assert finder.pattern == (0, 1)
    assert ends[-5:] == [12, 14, 16, 18, 20]


def test_a_change_of_optimizer_is_followed():
    finder, ends = cut([0] * 20 + [1] * 60)
    assert finder.pattern == (1,)
    assert ends[-10:] == list(range(70, 80))


def test_one_single_call_of_another_optimizer_is_forgotten():
    assert cut([1] + [0] * 60)[0].pattern == (0,)


def test_without_a_period_the_most_frequent_mark_ends_a_step():
    rng = random.Random(1)
    finder, ends = cut([1 if rng.random() < 0.2 else 0 for _ in range(600)])
    assert finder.pattern == (0,) and not finder.fixed
    assert len(ends) > 100
