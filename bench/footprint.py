"""CPU time and peak memory of a command, without those of the process that starts it.

The system counts the memory of a process from before it becomes another program, so a process started by Python has
had at least Python's 10 MB. A small program in C, made with `cc` once, therefore starts it.
"""

import os
import pathlib
import subprocess

SOURCE = r"""
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char** arguments) {
  const pid_t child = fork();
  if (child == 0) {
    execvp(arguments[2], arguments + 2);
    _exit(127);
  }
  int status = 0;
  struct rusage used;
  if (child < 0 || wait4(child, &status, 0, &used) != child || count < 3) return 126;
  FILE* out = fopen(arguments[1], "w");
  fprintf(out, "%ld %ld %ld %ld %ld\n", (long)used.ru_utime.tv_sec, (long)used.ru_utime.tv_usec,
          (long)used.ru_stime.tv_sec, (long)used.ru_stime.tv_usec, used.ru_maxrss);
  fclose(out);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
"""


class Footprint:
    """Runs commands. Keeps its program in `folder`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        source = self.folder / "footprint.c"
        source.write_text(SOURCE)
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", self.folder / "footprint", source], check=True)

    def run(self, command, **options):
        """Returns output and exit code, CPU seconds and MB (of 10^6 bytes)."""
        told = self.folder / "footprint.txt"
        told.unlink(missing_ok=True)
        done = subprocess.run([self.folder / "footprint", told, *map(str, command)], capture_output=True, text=True, **options)
        if not told.exists():
            raise SystemExit(f"{command[0]}: cannot be run")
        user_s, user_us, system_s, system_us, kib = map(int, told.read_text().split())
        return done, user_s + system_s + (user_us + system_us) / 1e6, kib * 1024 / 1e6
