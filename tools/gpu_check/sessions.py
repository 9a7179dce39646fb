"""Running programs, each with its descendants in a session of its own, and how to end them."""

import contextlib
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any, Dict, List, Set

GRACE_S = 5  # between SIGTERM and SIGKILL


class Interrupted(Exception):
    """No more programs may start."""


class Sessions:
    """The running programs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Set["subprocess.Popen[bytes]"] = set()
        self.is_closed = False

    def start(self, command: List[str], environment: Dict[str, str], log: Any) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self.is_closed:
                raise Interrupted("interrupted")
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                       env=environment, start_new_session=True)
            self._running.add(process)
            return process

    def end(self, process: "subprocess.Popen[bytes]") -> None:
        """Ends the process if it runs, with SIGTERM first, then every process left in its session."""
        if process.poll() is None:
            ask_to_end(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
        for pid in processes_of_session(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        with self._lock:
            self._running.discard(process)

    def close(self) -> None:
        """Ends all programs and starts no more."""
        with self._lock:
            self.is_closed = True
            running = list(self._running)
        for process in running:
            ask_to_end(process)
        for process in running:
            self.end(process)


def ask_to_end(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)


def processes_of_session(session: int) -> List[int]:
    """Process groups are not enough: each rank of an MPI job makes one of its own."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            # pid (name) state parent group session ...; the name may hold anything
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == session:
                found.append(int(entry.name))
    return found
