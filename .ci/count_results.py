#!/usr/bin/env python3
"""count_results.py EVENTS STATUS: prints "PASSED FAILED SKIPPED" for a finished `bazel test`.

EVENTS is its --build_event_json_file, STATUS its exit status. A test counts as passed only when
Bazel says PASSED: flaky, timed out, incomplete, never started and never built are failures. So is
each target that is not a test and did not build, and whatever else made the exit status non-zero.

A test that cannot run on this machine is named with its reason and counted as skipped. Tests say so in
their log:
  - GoogleTest's cases with GTEST_SKIP;
  - any other test, and each case of one, with a line `SKIPPED: name: reason`.
A test that skipped all of its cases, or that gives its own name, did not pass.
"""

import json
import re
import sys
import urllib.parse

# mpirun puts the rank before each line.
RANK = r"^(?:\[\d+,\d+\]<std(?:out|err)>:)?"
GTEST_REASON = re.compile(RANK + r".*: Skipped$")
GTEST_SKIPPED = re.compile(RANK + r"\[  SKIPPED \] (\w[\w/]*\.[\w/]+)")
GTEST_NOTHING_PASSED = re.compile(RANK + r"\[  PASSED  \] 0 tests")
SKIPPED = re.compile(RANK + r"SKIPPED: ([^:\s]+): (.*)")
ANY_RANK = re.compile(RANK)


def skipped_in(log, test_name):
    """({case: reason}, whether the whole test was skipped)."""
    cases, whole, reason = {}, False, ""
    lines = log.splitlines()
    for number, line in enumerate(lines):
        if GTEST_REASON.match(line) and number + 1 < len(lines):
            reason = ANY_RANK.sub("", lines[number + 1])
        elif found := GTEST_SKIPPED.match(line):
            cases.setdefault(found.group(1), reason)
        elif found := SKIPPED.match(line):
            cases[found.group(1)] = found.group(2)
            whole = whole or found.group(1) == test_name
    # Ranks and shards have summaries of their own.
    summaries = [line for line in lines if "[  PASSED  ]" in line]
    nothing_passed = bool(summaries) and all(GTEST_NOTHING_PASSED.match(line) for line in summaries)
    return cases, whole or (bool(cases) and nothing_passed)


def read_events(path):
    with open(path, encoding="utf-8") as events:
        for line in events:
            event = json.loads(line)
            kind, event_id = next(iter(event["id"].items()))
            yield kind, event_id, event


def read_log(uri):
    parts = urllib.parse.urlparse(uri)
    if parts.scheme != "file":
        raise ValueError(f"the log {uri} is not on this machine")
    with open(urllib.parse.unquote(parts.path), encoding="utf-8", errors="replace") as file:
        return file.read()


def main():
    events_path, bazel_status = sys.argv[1], int(sys.argv[2])
    tests, summaries, logs, not_built = set(), {}, {}, set()
    for kind, event_id, event in read_events(events_path):
        if kind == "targetConfigured":
            target_kind = event.get("configured", {}).get("targetKind", "")
            if target_kind.endswith("_test rule"):
                tests.add(event_id["label"])
        elif kind == "targetCompleted":
            if not event.get("completed", {}).get("success", False):
                not_built.add(event_id["label"])
        elif kind == "testResult":
            for output in event.get("testResult", {}).get("testActionOutput", []):
                if output["name"] == "test.log":
                    logs.setdefault(event_id["label"], []).append(output["uri"])
        elif kind == "testSummary":
            status = event.get("testSummary", {}).get("overallStatus", "NO_STATUS")
            summaries[event_id["label"]] = status
        elif kind == "pattern" and "aborted" in event:
            not_built.add(" ".join(event_id.get("pattern", [])))

    passed = {label for label, status in summaries.items() if status == "PASSED"}
    failed = {label: status for label, status in summaries.items() if status != "PASSED"}
    failed.update({label: "DID NOT BUILD" for label in not_built - passed - failed.keys()})
    unseen = {label: "NEVER RAN" for label in tests - passed - failed.keys()}
    # Tests that a tag filter or `manual` leaves out are not configured, so unseen ones were wanted.
    failed.update(unseen)
    if bazel_status != 0 and not failed:
        failed[f"bazel test (exit status {bazel_status})"] = "FAILED"

    skipped = {}
    for label in sorted(passed):
        name = label.rpartition(":")[2]
        cases, whole = skipped_in("\n".join(read_log(uri) for uri in logs.get(label, [])), name)
        if whole:
            passed.remove(label)
            skipped[label] = cases.get(name) or "; ".join(sorted(set(cases.values())))
        else:
            skipped.update({f"{label} {case}": reason for case, reason in cases.items()})

    for label, reason in skipped.items():
        print(f"SKIPPED: {label}: {reason}", file=sys.stderr)
    for label, status in sorted(failed.items()):
        print(f"{status}: {label}", file=sys.stderr)
    print(len(passed), len(failed), len(skipped))


main()
