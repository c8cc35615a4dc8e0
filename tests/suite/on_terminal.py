"""A command whose stderr is a terminal, which shows its progress."""

import os
import select
import subprocess


class OnTerminal:
    def __init__(self, words):
        self._terminal, theirs = os.openpty()
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        self.text = ""

    def wait_for(self, text, timeout=300):
        """Reads until `text` is there."""
        while text not in self.text:
            assert self._read(timeout), self.text

    def end(self, timeout=120):
        """Reads the rest; returns the exit code."""
        while self._read(timeout):
            pass
        os.close(self._terminal)
        return self.process.wait(timeout)

    def _read(self, timeout):
        if not select.select([self._terminal], [], [], timeout)[0]:
            self.process.kill()
            raise AssertionError(f"nothing for {timeout} s after: {self.text}")
        try:
            part = os.read(self._terminal, 4096).decode(errors="replace")
        except OSError:  # nobody has it open any more
            part = ""
        self.text += part
        return part != ""
