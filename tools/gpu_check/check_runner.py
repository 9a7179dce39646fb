"""Runs named checks, some of them concurrently, until their time is over.

A check is a function that runs programs through a CheckRun. It returns facts to be recorded, or raises CheckFailed or
CheckSkipped with the reason. Each check has a log, and the record is rewritten whenever a check begins or ends.
"""

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
from typing import Callable, Dict, List, Optional, Tuple

from results import Facts, Results
from sessions import Interrupted, Sessions

EXCERPT_LINES = 40  # of a log, in the record
PRINTED_LINES = 6  # of the excerpt
EXCERPT_COLUMNS = 300
SHORTEST_LIMIT_S = 120  # for a check that normally takes seconds
NORMAL_TIMES = 5  # a check may take at most this many times its normal time
PACKING_S = 12  # kept at the end of --minutes, to end running programs and to pack
# Messages of our programs and of NCCL when ranks have waited too long for each other.
DEADLINE = re.compile(r"no progress for|no sign of rank|not all ranks came within|timed out")


class CheckFailed(Exception):
    """The text is the reason, in one line; the log has more."""

    facts: Facts = {}  # known although the check failed


class Hopeless(CheckFailed):
    """No later check could pass either."""


class ProgramFailed(CheckFailed):
    """The last lines of the log say more."""


class TooSlow(ProgramFailed):
    """The program, or a rank that it waited for, was too slow. Beside other checks this says little."""


class TimeIsOver(Exception):
    """The time for all checks is up; an unfinished check has no result."""


class CheckSkipped(Exception):
    """The text is the reason."""


@dataclass(frozen=True)
class Check:
    name: str
    run: Callable[["CheckRun"], Optional[Facts]]
    programs: Tuple[str, ...] = ()  # must exist
    alone: bool = False  # no other check runs at the same time
    ranks: int = 1  # use the GPU at the same time
    normal_s: float = 3  # the check does not begin if less time is left

    def limit_s(self) -> float:
        return max(SHORTEST_LIMIT_S, NORMAL_TIMES * self.normal_s)


@dataclass(frozen=True)
class Completed:
    exit_code: int  # negative: the signal that ended it
    output: str  # standard output and error together


class CheckRun:
    """One run of a check, passed to the check's function."""

    def __init__(self, log: Path, folder: Path, timeout_s: float, end: Optional[float], sessions: Sessions):
        self.folder = folder  # empty; removed after the check
        self.timeout_s = timeout_s
        self._log = log
        self._deadline = time.monotonic() + timeout_s
        self._end = end  # the time at which all checks end
        self._sessions = sessions

    def execute(self, command: List[str], environment: Optional[Dict[str, str]] = None) -> Completed:
        """Runs the command to its end. When the check's time is up, kills it and all processes that it started."""
        # Concurrent checks must not share temporary files.
        variables = {"TMPDIR": str(self.folder), "TEST_TMPDIR": str(self.folder), **(environment or {})}
        shown = [f"{name}={shlex.quote(value)}" for name, value in (environment or {}).items()]
        deadline = self._deadline if self._end is None else min(self._deadline, self._end)
        with self._log.open("ab") as log:
            log.write(" ".join(["$", *shown, shlex.join(command)]).encode() + b"\n")
            log.flush()
            start = log.tell()
            try:
                process = self._sessions.start(command, {**os.environ, **variables}, log)
            except OSError as error:
                raise CheckFailed(f"{command[0]}: {error.strerror}") from error
            try:
                exit_code = process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired as error:
                if deadline == self._end:
                    raise TimeIsOver from error
                raise TooSlow(f"{Path(command[0]).name}: not done after {self.timeout_s:g} s") from error
            finally:
                self._sessions.end(process)
        output = self._log.read_bytes()[start:].decode(errors="replace")
        return Completed(exit_code, output)

    def execute_well(self, command: List[str], environment: Optional[Dict[str, str]] = None) -> str:
        """Returns the command's output; any exit code but 0 fails the check."""
        done = self.execute(command, environment)
        if done.exit_code != 0:
            how = f"exit code {done.exit_code}" if done.exit_code > 0 else signal.Signals(-done.exit_code).name
            error = re.search(r"^error.*", done.output, re.MULTILINE)
            kind = TooSlow if DEADLINE.search(done.output) else ProgramFailed
            raise kind(f"{Path(command[0]).name}: {how}" + (f": {error.group(0)}" if error else ""))
        return done.output


# ---- running checks


class Runner:
    """`end`, if any, is a time of time.monotonic()."""

    def __init__(self, results: Results, timeout_s: float, jobs: int, end: Optional[float]) -> None:
        self._results = results
        self._timeout_s = timeout_s
        self._jobs = jobs
        left_s = 0.0 if end is None else end - time.monotonic()
        self._end = None if end is None else end - min(PACKING_S, left_s / 10)
        self._sessions = Sessions()
        self._lock = threading.Lock()
        self._too_slow: List[Check] = []  # beside others, in the current group
        self._hopeless: Optional[str] = None  # why

    def run_all(self, checks: List[Check]) -> None:
        """Runs the checks in the given order; neighbours that need not be alone run concurrently. Those that were too
        slow then run again, one by one: programs that share a GPU take its time from each other.
        """
        try:
            for (alone, ranks), group in groupby(checks, lambda check: (check.alone, check.ranks)):
                self._run_group(list(group), 1 if alone else max(1, self._jobs // ranks))
                again, self._too_slow = self._too_slow, []
                self._run_group(again, 1, is_second=True)
        finally:
            self._sessions.close()

    def _run_group(self, checks: List[Check], jobs: int, is_second: bool = False) -> None:
        with ThreadPoolExecutor(jobs) as pool:
            try:
                list(pool.map(lambda check: self._run(check, jobs > 1, is_second), checks))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self._sessions.close()
                raise

    def _run(self, check: Check, has_neighbours: bool, is_second: bool = False) -> None:
        if self._hopeless is not None:
            self._results.record(check.name, {"status": "not run", "reason": self._hopeless})
            return
        left_s = float("inf") if self._end is None else self._end - time.monotonic()
        if left_s < check.normal_s:
            reason = f"it takes about {check.normal_s:g} s, more than was left of --minutes"
            self._results.record(check.name, {"status": "not run", "reason": reason})
            return
        self._results.record(check.name, {"status": "running"})
        log = self._results.folder / f"{check.name}.log"
        log.write_bytes(b"")
        start = time.monotonic()
        outcome = self._outcome(check, log)
        if self._sessions.is_closed:
            return  # a killed check has no result
        again = outcome.pop("too_slow", False) and has_neighbours
        entry = {"seconds": round(time.monotonic() - start, 1), **outcome, **({"again": True} if is_second else {})}
        self._results.record(check.name, entry)
        self._print(check.name, entry)
        if again:
            with self._lock:
                self._too_slow.append(check)

    def _outcome(self, check: Check, log: Path) -> Facts:
        folder = tempfile.mkdtemp(prefix="check.")
        try:
            timeout_s = min(self._timeout_s, check.limit_s())
            facts = check.run(CheckRun(log, Path(folder), timeout_s, self._end, self._sessions))
            return {"status": "passed", "facts": facts or {}}
        except TimeIsOver:
            return {"status": "not run", "reason": "--minutes were over before it was done"}
        except CheckSkipped as skipped:
            return {"status": "skipped", "reason": str(skipped)}
        except ProgramFailed as failed:
            slow = {"too_slow": True} if isinstance(failed, TooSlow) else {}
            known = {"facts": failed.facts} if failed.facts else {}
            return {"status": "failed", "reason": str(failed), "log_end": excerpt(log), **known, **slow}
        except Hopeless as failed:
            self._hopeless = str(failed)
            return {"status": "failed", "reason": str(failed)}
        except (CheckFailed, Interrupted) as failed:
            return {"status": "failed", "reason": str(failed)}
        except Exception as error:  # a bug in one check must not stop the others
            return {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _print(self, name: str, entry: Facts) -> None:
        word = {"passed": "ok", "failed": "FAILED"}.get(entry["status"], entry["status"])
        lines = [f"{word:<8} {name:<34} {entry['seconds']:>6.1f} s  {entry.get('reason', '')}".rstrip()]
        lines += [f"    | {line}" for line in entry.get("log_end", [])[-PRINTED_LINES:]]
        with self._lock:
            print("\n".join(lines), flush=True)


def excerpt(log: Path) -> List[str]:
    """The last lines that are not empty."""
    lines = [line[:EXCERPT_COLUMNS] for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-EXCERPT_LINES:]
