# SPDX-License-Identifier: Apache-2.0
"""Run a program that must not outlive whoever started this: it is killed when standard input ends.

    python -m arenite.device.emulators.supervise PROGRAM ARGUMENT...

The starter holds the other end of the pipe; however it ends, the system closes it.
"""

from __future__ import annotations

import subprocess
import sys
import threading

__all__ = ["main"]


def main(command: list[str]) -> int:
    """Run the command; its exit code."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        threading.Thread(target=_kill_at_end_of_input, args=(process,), daemon=True).start()
        return process.wait()


def _kill_at_end_of_input(process: subprocess.Popen[bytes]) -> None:
    sys.stdin.buffer.read()
    process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
