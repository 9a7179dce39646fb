#!/usr/bin/env python3
"""seeded_faults_test.py SEEDED_FAULTS: every fault of seeded_faults.py can be put into the sources as they are, without
a build; and a fault that cannot does not keep the others from being tried.
"""

import contextlib
import io
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1)).absolute().parent))
import seeded_faults as faults  # noqa: E402


class Faults(unittest.TestCase):
    def test_all_stand_in_the_sources(self):
        self.assertGreaterEqual(len(faults.FAULTS), 50)
        for name, (file, place, fault, (source, _)) in faults.FAULTS.items():
            with self.subTest(name):
                folder = pathlib.Path(faults.FOLDERS[name])
                self.assertTrue((folder / source).exists(), source)
                self.assertNotEqual(faults.faulty_source(name), (folder / file).read_text())

    def test_a_text_stands_once_or_is_numbered(self):
        self.assertEqual(faults.with_fault("a b c", "b", "d"), "a d c")
        self.assertEqual(faults.with_fault("a b b", "2:b", "d"), "a b d")
        for text, place, times in [("a b b", "b", 2), ("a c", "b", 0), ("a b", "2:b", 1)]:
            with self.assertRaisesRegex(faults.NotTried, f"stands {times} times: b"):
                faults.with_fault(text, place, "d")


class Runs(unittest.TestCase):
    def run_faults(self, run_fault):
        """What is printed, and the exit status, of faults a, b and c."""
        printed = io.StringIO()
        with mock.patch.multiple(faults, Build=mock.Mock(), run_fault=run_fault, FAULTS=dict.fromkeys("abc"),
                                 FOLDERS=dict.fromkeys("abc", "folder/")), \
                mock.patch.object(sys, "argv", ["seeded_faults.py"]), contextlib.redirect_stdout(printed), \
                self.assertRaises(SystemExit) as exit_:
            faults.main()
        return printed.getvalue().splitlines(), exit_.exception.code

    def test_all_caught(self):
        lines, status = self.run_faults(lambda _, name: (True, f"block {name}"))
        self.assertEqual(lines[0], "caught     a: block a")
        self.assertEqual(lines[-1], "3 of 3 caught, 0 missed, 0 not tried")
        self.assertEqual(status, 0)

    def test_more_are_missed_than_may_be(self):
        with mock.patch.object(faults, "MISSED_AT_MOST", 1):
            self.assertEqual(self.run_faults(lambda _, name: (name != "b", ""))[1], 0)
            lines, status = self.run_faults(lambda _, name: (name == "b", ""))
        self.assertEqual(lines[-1], "1 of 3 caught, 2 missed, 0 not tried")
        self.assertEqual(status, 1)

    def test_goes_on_after_a_fault_that_cannot_be_tried(self):
        def run_fault(_, name):
            if name == "a":
                raise faults.NotTried("stands 0 times: text")
            return True, "seen"
        lines, status = self.run_faults(run_fault)
        self.assertEqual(lines, ["NOT TRIED  a: stands 0 times: text", "caught     b: seen", "caught     c: seen",
                                 "2 of 3 caught, 0 missed, 1 not tried"])
        self.assertEqual(status, 1)


if __name__ == "__main__":
    unittest.main()
