"""Recorded facts of the C library's heap and of memory."""

import threading

import pytest
from conftest import check_traces, program

from etude.recording import heap

REFUSAL = "can't create new thread at interpreter shutdown"


@pytest.fixture
def forget():
    heap.facts.cache_clear()
    yield
    heap.facts.cache_clear()


def test_where_no_thread_starts_nothing_is_known(monkeypatch, forget):
    def refused(_):
        raise RuntimeError(REFUSAL)

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert heap.facts() == {}


def test_a_capture_that_the_end_of_the_program_publishes(run):
    """The recorded steps are not the most frequent ones, because more were expected. Exit handlers of Python 3.12
    start no thread."""
    result = run(
        program(
            f"""
            import atexit, threading
            def refused(_): raise RuntimeError({REFUSAL!r})
            atexit.register(setattr, threading.Thread, "start", refused)
            for i in range(8):
                train(5 if i < 5 else 6)
            """
        )
    )
    assert (result.code, result.err) == (0, "")
    check_traces(result)
    assert "mmap_threshold" in result.rank()["heap"]


def test_memory_that_steps_add(run):
    """A step holds 64 MB at its peak, which the process did not have before."""
    result = run(
        program(
            """
            for _ in range(12):
                optimizer.zero_grad()
                result = model(torch.randn(5, 8))
                block = torch.ones(16 << 20)
                result.sum().backward()
                optimizer.step()
                del block
            """
        )
    )
    memory = result.rank()["memory"]
    assert 64 << 20 <= memory["peak_bytes"] - memory["before_steps_bytes"] < 100 << 20
