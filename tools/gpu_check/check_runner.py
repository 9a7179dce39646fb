"""Runs named checks, some at the same time, and keeps a record of them that a kill does not lose.

A check is a function of a CheckRun, with which it runs programs. It returns facts to be recorded, or raises CheckFailed
or CheckSkipped with the reason. Each has a log, and results.json is written anew whenever a check begins or ends.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

GRACE_S = 10  # between the polite signal and the other one
EXCERPT_LINES = 40  # in the record
PRINTED_LINES = 6  # of them
EXCERPT_COLUMNS = 300

Facts = Dict[str, Any]


class CheckFailed(Exception):
    """Its text is the reason, in one line; the log has more."""


class ProgramFailed(CheckFailed):
    """The last lines of the log say more."""


class CheckSkipped(Exception):
    """Its text is the reason."""


@dataclass(frozen=True)
class Check:
    name: str
    run: Callable[["CheckRun"], Optional[Facts]]
    programs: Tuple[str, ...] = ()  # that must be there
    alone: bool = False  # no other check runs meanwhile


@dataclass(frozen=True)
class Completed:
    exit_code: int  # negative: the signal that ended it
    output: str  # standard output and error together


class CheckRun:
    """One run of a check: what its function gets."""

    def __init__(self, log: Path, folder: Path, timeout_s: float, sessions: "Sessions"):
        self.folder = folder  # empty; removed after the check
        self.timeout_s = timeout_s
        self._log = log
        self._deadline = time.monotonic() + timeout_s
        self._sessions = sessions

    def execute(self, command: List[str], environment: Optional[Dict[str, str]] = None) -> Completed:
        """Runs the command to its end. When the check's time is up it is killed with all that it started."""
        # Temporary files of checks that run at the same time must not meet.
        variables = {"TMPDIR": str(self.folder), "TEST_TMPDIR": str(self.folder), **(environment or {})}
        shown = [f"{name}={shlex.quote(value)}" for name, value in (environment or {}).items()]
        with self._log.open("ab") as log:
            log.write(" ".join(["$", *shown, shlex.join(command)]).encode() + b"\n")
            log.flush()
            start = log.tell()
            process = self._sessions.start(command, {**os.environ, **variables}, log)
            try:
                exit_code = process.wait(max(0.0, self._deadline - time.monotonic()))
            except subprocess.TimeoutExpired as error:
                raise ProgramFailed(f"{Path(command[0]).name}: not done after {self.timeout_s:g} s") from error
            finally:
                self._sessions.end(process)
        output = self._log.read_bytes()[start:].decode(errors="replace")
        return Completed(exit_code, output)

    def execute_well(self, command: List[str], environment: Optional[Dict[str, str]] = None) -> str:
        """What the command prints; any exit code but 0 fails the check."""
        done = self.execute(command, environment)
        if done.exit_code != 0:
            how = f"exit code {done.exit_code}" if done.exit_code > 0 else signal.Signals(-done.exit_code).name
            error = re.search(r"^error.*", done.output, re.MULTILINE)
            raise ProgramFailed(f"{Path(command[0]).name}: {how}" + (f": {error.group(0)}" if error else ""))
        return done.output


# ---- processes


class Sessions:
    """The programs that run, each with its descendants in a session of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Set["subprocess.Popen[bytes]"] = set()
        self.is_closed = False

    def start(self, command: List[str], environment: Dict[str, str], log: Any) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self.is_closed:
                raise CheckFailed("interrupted")
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                           env=environment, start_new_session=True)
            except OSError as error:
                raise CheckFailed(f"{command[0]}: {error.strerror}") from error
            self._running.add(process)
            return process

    def end(self, process: "subprocess.Popen[bytes]") -> None:
        """Ends the process if it runs, politely at first, and then all that is left of its session."""
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
        """Ends all that runs; nothing starts any more."""
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


# ---- the record


class Results:
    """results.json: {"programs_sha256": ..., "checks": {name: {"status", "seconds", "reason", "log_end", "facts"}}}.

    A status is running, passed, failed, skipped or not run.
    """

    def __init__(self, path: Path, programs_sha256: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._content: Facts = {"programs_sha256": programs_sha256, "checks": {}}

    def take_over(self, earlier: Facts) -> None:
        """What an earlier run has recorded."""
        self._content["checks"] = dict(earlier["checks"])

    def record(self, name: str, entry: Facts) -> None:
        with self._lock:
            self._content["checks"][name] = entry
            partial = self._path.with_suffix(".partial")
            partial.write_text(json.dumps(self._content, indent=1) + "\n")
            os.replace(partial, self._path)

    def status(self, name: str) -> Optional[str]:
        return self._content["checks"].get(name, {}).get("status")


# ---- running checks


class Runner:
    def __init__(self, output: Path, results: Results, timeout_s: float, jobs: int, minutes: Optional[float]) -> None:
        self._output = output
        self._results = results
        self._timeout_s = timeout_s
        self._jobs = jobs
        self._begin_until = None if minutes is None else time.monotonic() + 60 * minutes
        self._sessions = Sessions()
        self._print_lock = threading.Lock()

    def run_all(self, checks: List[Check]) -> None:
        """In the given order; neighbours that need not be alone run at the same time."""
        try:
            for alone, group in groupby(checks, lambda check: check.alone):
                with ThreadPoolExecutor(1 if alone else self._jobs) as pool:
                    try:
                        list(pool.map(self._run, group))
                    except BaseException:
                        pool.shutdown(wait=False, cancel_futures=True)
                        self._sessions.close()
                        raise
        finally:
            self._sessions.close()

    def _run(self, check: Check) -> None:
        if self._begin_until is not None and time.monotonic() > self._begin_until:
            self._results.record(check.name, {"status": "not run", "reason": "--minutes were over"})
            return
        self._results.record(check.name, {"status": "running"})
        log = self._output / f"{check.name}.log"
        log.write_bytes(b"")
        start = time.monotonic()
        outcome = self._outcome(check, log)
        if self._sessions.is_closed:
            return  # what a kill left of it is no result
        entry = {"seconds": round(time.monotonic() - start, 1), **outcome}
        self._results.record(check.name, entry)
        self._print(check.name, entry)

    def _outcome(self, check: Check, log: Path) -> Facts:
        folder = tempfile.mkdtemp(prefix="check.")
        try:
            facts = check.run(CheckRun(log, Path(folder), self._timeout_s, self._sessions))
            return {"status": "passed", "facts": facts or {}}
        except CheckSkipped as skipped:
            return {"status": "skipped", "reason": str(skipped)}
        except ProgramFailed as failed:
            return {"status": "failed", "reason": str(failed), "log_end": excerpt(log)}
        except CheckFailed as failed:
            return {"status": "failed", "reason": str(failed)}
        except Exception as error:  # a mistake in one check is no reason to leave out the others
            return {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _print(self, name: str, entry: Facts) -> None:
        word = {"passed": "ok", "failed": "FAILED"}.get(entry["status"], entry["status"])
        lines = [f"{word:<8} {name:<34} {entry['seconds']:>6.1f} s  {entry.get('reason', '')}".rstrip()]
        lines += [f"    | {line}" for line in entry.get("log_end", [])[-PRINTED_LINES:]]
        with self._print_lock:
            print("\n".join(lines), flush=True)


def excerpt(log: Path) -> List[str]:
    """The last lines that say something."""
    lines = [line[:EXCERPT_COLUMNS] for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-EXCERPT_LINES:]
