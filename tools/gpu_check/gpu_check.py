#!/usr/bin/env python3
"""Shows on a GPU everything about Zerograph that only a GPU can show, in one command.

In a directory made by `tools/bundle.sh --gpu-check`, on a machine with an NVIDIA driver, cuBLASLt and NCCL:

    zerograph/gpu_check
    zerograph/gpu_check --only 'demo.gpt.*' ops.linear --output /tmp/check

Where a machine is lent for minutes, one archive goes there and one comes back, which the next call goes on from:

    zerograph/gpu_check --minutes 9 --archive first.tar.gz
    zerograph/gpu_check --minutes 9 --resume first.tar.gz --archive second.tar.gz

In the source tree it is tools/gpu_check/gpu_check.py, and takes the programs from bazel-bin:

    bazel build -c opt $(tools/gpu_check/gpu_check.py --list-targets) && tools/gpu_check/gpu_check.py

Checks, what says most first: the machine; every op against the CPU; the GPT demo in bf16 (same bits at every stage, on
one rank and two, queued and as a CUDA graph; plans equal to measurements; losses near the CPU's); the speed of kernels
and of training, against estimates and, with a python3 that has PyTorch, against that; bits and losses of GPT-2 at full
size; memcheck of the kernels that address most. Then training at every stage, the other demos, a model that does not
fit, counters, and the rest under compute-sanitizer. A failed check does not stop the others, unless there is no GPU.
Each has a log in --output; results.json there has all outcomes, summary.md one page of them, and the archive all files.

Exit codes: 0 every check passed or was skipped, and one passed at least; 1 otherwise; 2 a wrong flag or a missing
program.
"""

import argparse
import fnmatch
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Callable, List

from check_runner import Check, Runner
from checks import all_checks
from machine import ROOT, TARGETS, add_to_library_path, find_libraries, has_program, how_to_get, programs_sha256
from results import Results, Unusable, read_earlier
from summary import summarize


class UsageError(Exception):
    """An error that only the caller can fix."""


def number(kind: Callable[[str], Any], smallest: str, is_allowed: Callable[[Any], bool]) -> Callable[[str], Any]:
    """A type for argparse."""

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not is_allowed(value):
            raise argparse.ArgumentTypeError(f"got {text}, expected a number, {smallest}")
        return value

    return parse


AT_LEAST_ONE = number(int, "at least 1", lambda value: value >= 1)
STARTED = time.monotonic()
OUTPUT = Path()  # --resume without a file
MORE_THAN_ZERO = number(float, "more than 0", lambda value: value > 0)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Shows on a GPU what only a GPU can show.")
    parser.add_argument("--list", action="store_true", help="print the names of the checks and exit")
    parser.add_argument("--list-targets", action="store_true", help="print the Bazel targets that it needs and exit")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=["*"], help="these checks; globs such as 'ops.*'")
    parser.add_argument("--skip", nargs="+", metavar="NAME", default=[], help="all but these")
    parser.add_argument("--output", type=Path, metavar="DIR", default=Path("gpu_check"),
                        help="for the logs and results.json (default gpu_check)")
    parser.add_argument("--archive", type=Path, metavar="FILE", help="for all of --output (default: its name .tar.gz)")
    parser.add_argument("--resume", nargs="?", type=Path, const=OUTPUT, metavar="FILE",
                        help="leave out what passed, by an archive or results.json (default: that in --output)")
    parser.add_argument("--timeout", type=MORE_THAN_ZERO, metavar="SECONDS", default=1200.0,
                        help="for each check at most; less for most of them (default 1200)")
    parser.add_argument("--minutes", type=MORE_THAN_ZERO, metavar="M", help="end within so long; what runs then is "
                        "ended, and what needs more than is left is not begun")
    parser.add_argument("--jobs", type=AT_LEAST_ONE, metavar="N", default=default_jobs(),
                        help="ranks at a time: half as many checks where each has two, one where it must be alone "
                        f"(default here {default_jobs()})")
    return parser.parse_args()


def default_jobs() -> int:
    """More concurrent checks would only take a GPU's time from each other."""
    return max(1, min(8, (os.cpu_count() or 1) // 2))


def choose(checks: List[Check], only: List[str], skip: List[str]) -> List[Check]:
    for flag, patterns in (("--only", only), ("--skip", skip)):
        for pattern in patterns:
            if not any(fnmatch.fnmatchcase(check.name, pattern) for check in checks):
                raise UsageError(f"{flag}: got {pattern!r}, expected the name of a check, or a glob of names; --list "
                                 "shows them")
    chosen = [check for check in checks if matches(check, only) and not matches(check, skip)]
    if not chosen:
        raise UsageError("--only and --skip leave no check")
    return chosen


def matches(check: Check, patterns: List[str]) -> bool:
    return any(fnmatch.fnmatchcase(check.name, pattern) for pattern in patterns)


def expect_programs(checks: List[Check]) -> None:
    needed = {name for check in checks for name in check.programs}
    missing = [name for name in TARGETS if name in needed and not has_program(name)]
    if missing:
        raise UsageError(f"{ROOT} lacks {', '.join(missing)}\n  hint: {how_to_get(missing)}")


def open_results(args: argparse.Namespace) -> Results:
    programs = programs_sha256()
    archive = args.archive or args.output.with_name(args.output.name + ".tar.gz")
    try:
        args.output.mkdir(parents=True, exist_ok=True)
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--output {args.output}: {error}") from error
    results = Results(args.output, programs, archive)
    source = args.output / "results.json" if args.resume == OUTPUT else args.resume
    if source is None or args.resume == OUTPUT and not source.exists():
        return results
    try:
        earlier = read_earlier(source, args.output)
    except Unusable as error:
        raise UsageError(f"--resume: {error}") from error
    if earlier["programs_sha256"] != programs:
        raise UsageError(f"--resume: {source} is of other programs\n  hint: begin anew, without --resume")
    results.take_over(earlier)
    return results


def check_all(args: argparse.Namespace) -> int:
    if args.list_targets:
        print("\n".join(TARGETS.values()))
        return 0
    checks = all_checks(args.output)
    if args.list:
        print("\n".join(check.name for check in checks))
        return 0
    chosen = choose(checks, args.only, args.skip)
    expect_programs(chosen)
    results = open_results(args)
    todo = order_of_resumed(chosen, results)
    if len(todo) < len(chosen):
        print(f"{len(chosen) - len(todo)} checks passed before")
    add_to_library_path(find_libraries().values())
    runner = Runner(results, args.timeout, args.jobs, args.minutes and STARTED + 60 * args.minutes)
    try:
        runner.run_all(todo)
    finally:  # also when a signal ends the run
        summary = summarize(results, [check.name for check in chosen])
        results.finish(summary)
    print("\n" + summary)
    return conclude(chosen, results)


def order_of_resumed(chosen: List[Check], results: Results) -> List[Check]:
    """Looks at the machine again, which may be another one; checks that failed come after those not reached."""
    todo = [check for check in chosen if results.status(check.name) != "passed" or check.name == "environment"]
    return sorted(todo, key=lambda check: results.status(check.name) == "failed" and check.name != "environment")


def conclude(chosen: List[Check], results: Results) -> int:
    statuses = [results.status(check.name) for check in chosen]
    counts = {status: statuses.count(status) for status in ("passed", "failed", "skipped", "not run")}
    left_out = f", {counts['not run']} not run" if counts["not run"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped{left_out}")
    return 0 if counts["passed"] > 0 and counts["passed"] + counts["skipped"] == len(chosen) else 1


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: sys.exit(128 + received))  # also ends the running programs
    try:
        return check_all(parse_arguments())
    except UsageError as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
