#!/usr/bin/env python3
"""Shows on a GPU everything about Zerograph that only a GPU can show, in one command.

In a directory made by `tools/bundle.sh --gpu-check`, on a machine with an NVIDIA driver, cuBLASLt and NCCL:

    zerograph/gpu_check
    zerograph/gpu_check --only 'demo.gpt.*' ops.linear --output /tmp/check
    zerograph/gpu_check --minutes 8 --resume            # again and again, where a machine is lent for minutes

In the source tree it is tools/gpu_check/gpu_check.py, and takes the programs from bazel-bin:

    bazel build -c opt $(tools/gpu_check/gpu_check.py --list-targets) && tools/gpu_check/gpu_check.py

Checks, in their order: the machine; the demos (same bits at every stage, on one rank and two, queued and as a CUDA
graph; plans equal to measurements; losses near the CPU's); every op against the CPU; training at every stage; a model
that does not fit; the ops under compute-sanitizer; the speed of kernels and, with a python3 that has PyTorch, of
training. A failed check does not stop the others. Each has a log in --output, and results.json there has all outcomes.

Exit codes: 0 every check passed or was skipped, and one passed at least; 1 otherwise; 2 a wrong flag or a missing
program.
"""

import argparse
import fnmatch
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Callable, List

from check_runner import Check, Results, Runner
from checks import all_checks
from machine import ROOT, TARGETS, add_to_library_path, find_libraries, has_program, how_to_get, programs_sha256


class UsageError(Exception):
    """What only the one who starts this can put right."""


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
MORE_THAN_ZERO = number(float, "more than 0", lambda value: value > 0)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Shows on a GPU what only a GPU can show.")
    parser.add_argument("--list", action="store_true", help="print the names of the checks and exit")
    parser.add_argument("--list-targets", action="store_true", help="print the Bazel targets that it needs and exit")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=["*"], help="these checks; globs such as 'ops.*'")
    parser.add_argument("--skip", nargs="+", metavar="NAME", default=[], help="all but these")
    parser.add_argument("--output", type=Path, metavar="DIR", default=Path("gpu_check"),
                        help="for the logs and results.json (default gpu_check)")
    parser.add_argument("--resume", action="store_true", help="leave out what passed, by results.json in --output")
    parser.add_argument("--timeout", type=MORE_THAN_ZERO, metavar="SECONDS", default=480.0,
                        help="for each check (default 480)")
    parser.add_argument("--minutes", type=MORE_THAN_ZERO, metavar="M", help="begin no check after so long")
    parser.add_argument("--jobs", type=AT_LEAST_ONE, metavar="N", default=default_jobs(),
                        help=f"checks at a time, except those that must be alone (default here {default_jobs()})")
    return parser.parse_args()


def default_jobs() -> int:
    """A check may have two ranks; a GPU's memory bears eight."""
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
    path, programs = args.output / "results.json", programs_sha256()
    try:
        args.output.mkdir(parents=True, exist_ok=True)
        earlier = json.loads(path.read_text()) if args.resume and path.exists() else None
    except (OSError, ValueError) as error:
        raise UsageError(f"--output {args.output}: {error}") from error
    results = Results(path, programs)
    if earlier is not None:
        if earlier["programs_sha256"] != programs:
            raise UsageError(f"--resume: {path} is of other programs\n  hint: begin anew, without --resume")
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
    todo = [check for check in chosen if results.status(check.name) != "passed"]
    if len(todo) < len(chosen):
        print(f"{len(chosen) - len(todo)} checks passed before")
    add_to_library_path(find_libraries().values())
    Runner(args.output, results, args.timeout, args.jobs, args.minutes).run_all(todo)
    return conclude(chosen, results)


def conclude(chosen: List[Check], results: Results) -> int:
    statuses = [results.status(check.name) for check in chosen]
    counts = {status: statuses.count(status) for status in ("passed", "failed", "skipped", "not run")}
    left_out = f", {counts['not run']} not run" if counts["not run"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped{left_out}")
    return 0 if counts["passed"] > 0 and counts["passed"] + counts["skipped"] == len(chosen) else 1


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: sys.exit(128 + received))  # ends what runs too
    try:
        return check_all(parse_arguments())
    except UsageError as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
