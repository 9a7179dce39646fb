#!/usr/bin/env python3
"""count_results.py EVENTS STATUS: prints "PASSED FAILED" for a finished `bazel test`.

EVENTS is its --build_event_json_file, STATUS its exit status. A test counts as passed only when
Bazel says PASSED: flaky, timed out, incomplete, never started and never built are failures. So is
each target that is not a test and did not build, and whatever else made the exit status non-zero.
"""

import json
import sys


def main():
    events_path, bazel_status = sys.argv[1], int(sys.argv[2])
    tests, summaries, not_built = set(), {}, set()
    with open(events_path, encoding="utf-8") as events:
        for line in events:
            event = json.loads(line)
            kind, event_id = next(iter(event["id"].items()))
            if kind == "targetConfigured":
                target_kind = event.get("configured", {}).get("targetKind", "")
                if target_kind.endswith("_test rule"):
                    tests.add(event_id["label"])
            elif kind == "targetCompleted":
                if not event.get("completed", {}).get("success", False):
                    not_built.add(event_id["label"])
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
    for label, status in sorted(failed.items()):
        print(f"{status}: {label}", file=sys.stderr)
    print(len(passed), len(failed))


main()
