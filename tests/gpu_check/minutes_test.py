#!/usr/bin/env python3
"""minutes_test.py GPU_CHECK BUNDLE: tests the use of a GPU that is lent for minutes, without a GPU. tools/bundle.sh
writes one archive of stand-ins, which this test's own fake bazel makes. gpu_check runs from the archive in an empty
directory until its time is over; unpacked once more, it continues from its results.
"""

import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

BUNDLE = pathlib.Path(sys.argv.pop(2)).absolute()

from stand_ins import NCU, NVIDIA_SMI, PROGRAMS, SANITIZER  # noqa: E402

BAZEL = f"#!{sys.executable} -IS" + """
import pathlib, shutil, sys
here = pathlib.Path(__file__).resolve().parent
with (here / "log").open("a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
if sys.argv[1] == "info":
    print(here / "out")
else:
    program = here / "out" / sys.argv[-1][2:].replace(":", "/")
    program.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(here / program.name, program)
"""
LEFT_OUT = ["demo.[rlc]*", "demo.gpt.f*", "stages.[1-8]", "racecheck.*"]  # gpu_check_test.py runs them


class Minutes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        for name, text in {**PROGRAMS, "bazel": BAZEL}.items():
            self.write(f"here/{name}", text)
        for name, text in {"nvidia-smi": NVIDIA_SMI, "compute-sanitizer": SANITIZER, "ncu": NCU}.items():
            self.write(f"there/bin/{name}", text)
        (self.path / "there/bin/python3").symlink_to(sys.executable)
        self.write("there/libraries/libnccl.so.2", "")
        self.write("there/libraries/libcublasLt.so.19", "")

    def write(self, name, text):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def pack(self, *flags):
        environment = {**os.environ, "PATH": f"{self.path}/here:{os.environ['PATH']}"}
        return subprocess.run([str(BUNDLE), "-o", str(self.path / "zerograph.tar.xz"), "--gpu-check", *flags],
                              capture_output=True, text=True, env=environment)

    def unpack(self, machine):
        """On a machine that has nothing else."""
        (self.path / machine).mkdir()
        subprocess.run(["tar", "-C", str(self.path / machine), "-xJf", str(self.path / "zerograph.tar.xz")], check=True)
        self.assertEqual(os.listdir(self.path / machine), ["zerograph"])

    def check(self, machine, *flags, **faults):
        there = self.path / "there"
        environment = {"PATH": f"{there / 'bin'}:/usr/bin:/bin", "LD_LIBRARY_PATH": str(there / "libraries"),
                       "HOME": str(self.path), "FAKE_FAULTS": json.dumps(faults), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(["zerograph/gpu_check", "--jobs", "2", "--skip", *LEFT_OUT, *flags], capture_output=True,
                              text=True, env=environment, cwd=self.path / machine, timeout=250)

    def results(self, archive):
        """The files of an archive, by name."""
        with tarfile.open(self.path / archive) as packed:
            return {pathlib.Path(member.name).name: packed.extractfile(member).read().decode() for member in packed}

    def runs_of(self, machine, program):
        return (self.path / machine / "zerograph/programs" / program / "log").read_text()

    def test_two_calls(self):
        self.write("broken.tar.gz", "no archive")
        self.write("other.json", json.dumps({"programs_sha256": "1", "checks": {}}))
        packed = self.pack("--define", "cuda_archs=90a", "--config", "werror", "--max-mb", "25")
        self.assertEqual(packed.returncode, 0, packed.stderr)
        self.assertRegex(packed.stdout, r"^\d+\.\d MB in .*/zerograph.tar.xz, with \d+\.\d MB\n$")
        builds = (self.path / "here/log").read_text()
        self.assertIn("build -c opt --define=cuda_archs=90a --config=werror //models/gpt:gpt\n", builds)

        self.unpack("first")
        done = self.check("first", "--minutes", "0.4", "--archive", "../first.tar.gz", hang="Cpu/linear:")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        files = self.results("first.tar.gz")
        checks = json.loads(files["results.json"])["checks"]
        self.assertEqual(checks["ops.add"]["status"], "passed")
        self.assertEqual(checks["ops.linear"], {**checks["ops.linear"], "status": "not run",
                                                "reason": "--minutes were over before it was done"})
        more = "it takes about 60 s, more than was left of --minutes"
        self.assertEqual(checks["kernel_bench"], {"status": "not run", "reason": more})
        self.assertIn("ops.add.log", files)
        self.assertRegex(files["summary.md"], r"(?m)^\| environment \| 1 \| 0 \| 0 \| 0 \|$")
        self.assertRegex(files["summary.md"], rf"(?m)^- kernel_bench, .*: not run, {more}$")
        self.assertIn("\n| kernel attention | 0.184 ms | - | - |  |\n", files["summary.md"])
        self.assertTrue(done.stdout.split("\n\n# GPU check\n")[1].startswith("\n- A GPU, driver 580.1, 1 GiB\n"))

        self.unpack("second")
        done = self.check("second", "--resume", "../first.tar.gz", "--archive", "../second.tar.gz")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("Cpu/add:", self.runs_of("second", "op_suite_gpu_test").replace("--gtest_filter", ""))
        self.assertIn("Cpu/linear:", self.runs_of("second", "op_suite_gpu_test"))
        files = self.results("second.tar.gz")
        checks = json.loads(files["results.json"])["checks"]
        self.assertEqual({entry["status"] for entry in checks.values()}, {"passed", "skipped"})
        self.assertIn("ops.add.log", files)  # from the first machine
        summary = files["summary.md"]
        self.assertIn("\n| kernel attention | 0.184 ms | 0.24 ms | 1.30 |  |\n", summary)
        self.assertIn("\n| kernel linear head | 3.92 ms | 12.3 ms | 3.14 | **slow** |\n", summary)
        self.assertIn("\n- **slow** kernel linear head: 12.3 ms, expected 3.92\n", summary)
        self.assertRegex(summary, r"(?m)^products, head .* 12.30$")
        self.assertLess(len(summary.splitlines()), 90)
        self.assertIn(summary, done.stdout)

        for name, message in (("broken.tar.gz", "broken.tar.gz: "), ("none.tar.gz", "No such file"),
                              ("other.json", "other.json is of other programs")):
            done = self.check("second", "--resume", f"../{name}")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(message, done.stderr)

    def test_an_archive_that_is_too_large(self):
        self.write("here/xz", "#!/bin/sh\nexec cat\n")  # takes less time
        packed = self.pack("--max-mb", "1")
        self.assertEqual(packed.returncode, 1, packed.stdout)
        self.assertRegex(packed.stderr, r"bundle.sh: \d+\.\d MB, expected at most 1 MB \(--max-mb\)\n  hint: fewer")
        self.assertFalse((self.path / "zerograph.tar.xz").exists())
        packed = self.pack("--max-mb", "0.5")
        self.assertEqual(packed.returncode, 2)
        self.assertIn("--max-mb: got '0.5', expected a whole number of at least 1", packed.stderr)


if __name__ == "__main__":
    unittest.main()
