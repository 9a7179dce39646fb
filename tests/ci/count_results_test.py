#!/usr/bin/env python3
"""count_results_test.py COUNT_RESULTS: what passed, failed and was skipped, from events like Bazel's."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

COUNT_RESULTS = pathlib.Path(sys.argv.pop(1)).absolute()

SOME_SKIPPED = """\
[ RUN      ] Gemm.Sums
[       OK ] Gemm.Sums (0 ms)
[ RUN      ] Gemm.HasTheBitsOfTheEmulation
tests/kernels/gemm_test.cc:216: Skipped
this processor has no AMX_BF16

[  SKIPPED ] Gemm.HasTheBitsOfTheEmulation (0 ms)
[==========] 2 tests from 1 test suite ran. (0 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Gemm.HasTheBitsOfTheEmulation
"""
ALL_SKIPPED = SOME_SKIPPED.replace("[  PASSED  ] 1 test.", "[  PASSED  ] 0 tests.")


class CountResults(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.events = []

    def add_test(self, label, status, *logs):
        self.events.append({"id": {"targetConfigured": {"label": label}},
                            "configured": {"targetKind": "cc_test rule"}})
        for number, log in enumerate(logs):
            path = self.directory / f"{len(self.events)} {number}.log"
            path.write_text(log)
            self.events.append({"id": {"testResult": {"label": label}}, "testResult": {
                "status": status, "testActionOutput": [{"name": "test.log", "uri": path.as_uri()}]}})
        if status:
            self.events.append({"id": {"testSummary": {"label": label}},
                                "testSummary": {"overallStatus": status}})

    def count(self, bazel_status=0):
        """The numbers, and the lines about single tests."""
        path = self.directory / "events"
        path.write_text("".join(json.dumps(event) + "\n" for event in self.events))
        done = subprocess.run([sys.executable, COUNT_RESULTS, path, str(bazel_status)], text=True, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.stdout.strip(), done.stderr.splitlines()

    def test_passed(self):
        self.add_test("//a:a", "PASSED", "fine\n")
        self.add_test("//a:b", "PASSED", "fine\n")
        self.assertEqual(self.count(), ("2 0 0", []))

    def test_anything_but_passed_is_failed(self):
        self.add_test("//a:flaky", "FLAKY", "")
        self.add_test("//a:late", "TIMEOUT", "")
        self.add_test("//a:never", None)
        self.events.append({"id": {"targetCompleted": {"label": "//a:library"}}, "aborted": {}})
        self.assertEqual(self.count(1), ("0 4 0", ["FLAKY: //a:flaky", "TIMEOUT: //a:late",
                                                   "DID NOT BUILD: //a:library", "NEVER RAN: //a:never"]))

    def test_a_failure_that_no_target_explains(self):
        self.add_test("//a:a", "PASSED", "")
        self.assertEqual(self.count(36), ("1 1 0", ["FAILED: bazel test (exit status 36)"]))

    def test_a_case_of_googletest(self):
        self.add_test("//a:gemm_test", "PASSED", SOME_SKIPPED)
        self.assertEqual(self.count(), ("1 0 1", [
            "SKIPPED: //a:gemm_test Gemm.HasTheBitsOfTheEmulation: this processor has no AMX_BF16"]))

    def test_a_case_is_counted_once_though_each_rank_says_so(self):
        ranks = [SOME_SKIPPED.replace("\n", f"\n[1,{rank}]<stdout>:") for rank in range(2)]
        self.add_test("//a:mpi_test_2_ranks", "PASSED", "".join("[1,0]<stdout>:" + rank for rank in ranks))
        self.assertEqual(self.count()[0], "1 0 1")

    def test_all_cases_of_googletest(self):
        self.add_test("//a:gemm_test", "PASSED", ALL_SKIPPED)
        self.assertEqual(self.count(), ("0 0 1", ["SKIPPED: //a:gemm_test: this processor has no AMX_BF16"]))

    def test_all_cases_of_one_shard(self):
        self.add_test("//a:gemm_test", "PASSED", ALL_SKIPPED, SOME_SKIPPED)
        self.assertEqual(self.count()[0], "1 0 1")

    def test_a_script(self):
        self.add_test("//a:two_hosts_test", "PASSED", "SKIPPED: two_hosts_test: it takes root: really\n")
        self.assertEqual(self.count(), ("0 0 1", ["SKIPPED: //a:two_hosts_test: it takes root: really"]))

    def test_a_part_of_a_script(self):
        self.add_test("//a:script_test", "PASSED", "SKIPPED: full_disk: no root\nSKIPPED: cable: no ip\nfine\n")
        self.assertEqual(self.count(), ("1 0 2", ["SKIPPED: //a:script_test full_disk: no root",
                                                  "SKIPPED: //a:script_test cable: no ip"]))

    def test_what_a_failed_test_skipped_is_not_counted(self):
        self.add_test("//a:script_test", "FAILED", "SKIPPED: full_disk: no root\n")
        self.assertEqual(self.count(3), ("0 1 0", ["FAILED: //a:script_test"]))

    def test_the_word_elsewhere(self):
        self.add_test("//a:a", "PASSED", "output: SKIPPED: no PyTorch\nSKIPPED: no PyTorch here: fine\n")
        self.assertEqual(self.count(), ("1 0 0", []))


unittest.main()
