#!/usr/bin/env python3
"""compare_with_torch_gpu_test.py COMPARE: the GPU benchmark without GPU and PyTorch: programs of this test stand in for
torch_gpu_peer.py and for ours, and a torch.py of this test for PyTorch.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMPARE = pathlib.Path(sys.argv.pop(1)).absolute()
PEER = COMPARE.parent / "torch_gpu_peer.py"

# Both write what a real one would, with times that the name of their contender decides, and log their flags.
STAND_IN = """
import json, pathlib, sys
flags = dict(zip(sys.argv[1:], sys.argv[2:] + [""]))
here = pathlib.Path(__file__).parent
with (here / "log").open("a") as log:
    log.write(json.dumps(sys.argv) + "\\n")
def tokens(ms):
    return 1000 / ms * int(flags["--batch"]) * int(flags["--context"])
def write(path, report):
    pathlib.Path(path).write_text(json.dumps(report))
"""
FAKE_PEER = STAND_IN + """
if "--probe" in flags:
    print(json.dumps({"reason": None, "gpu": "a GPU", "torch": "2.9", "cuda": "13.0"}))
elif "--ceilings" in flags:
    write(flags["--json"], {"ceilings": {"flops_per_s": 1e14, "bytes_per_s": 1e12}})
else:
    ms = {"none master": 40.0, "none autocast": 50.0, "default master": 30.0, "default autocast": 20.0}[
        flags["--compile"] + " " + flags["--precision"]]
    write(flags["--json"], {"speed": {"ms_per_step_median": ms, "tokens_per_s": tokens(ms)},
                            "memory": {"device_peak": 5000000}})
"""
FAKE_GPT = "#!" + sys.executable + STAND_IN + """
data = pathlib.Path(flags["--data"]).read_bytes()
assert max(data[0::2]) <= 255 and len(data) // 2 * 0.1 >= int(flags["--batch"]) * (int(flags["--context"]) + 1)
assert max(data[i] + 256 * data[i + 1] for i in range(0, 20000, 2)) < int(flags["--vocab"])
if (here / "fail").exists() and flags["--zero"] == "3":
    sys.exit("error: stage 3 does not want to")
ms = 8.0 if "--cuda-graph" in flags else 10.0
if "--gemm-choices" in flags:
    choices = pathlib.Path(flags["--gemm-choices"])
    choices.write_text(choices.read_text() + "." if choices.exists() else ".")
    (here / "choices").write_text(choices.read_text())
    ms -= 1
rate = tokens(ms) / (2 if (here / "half").exists() else 1)
write(flags["--report"], {"speed": {"ms_per_step_median": ms, "tokens_per_s": rate},
                          "memory": {"measured": {"peak": 3000000}, "device_libraries": 1000000}})
"""
SIZES = ["--layers", "2", "--heads", "2", "--embd", "8", "--context", "16", "--batch", "4", "--vocabulary", "300"]


class Fixture(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def write(self, name, text):
        (self.path / name).write_text(text)
        (self.path / name).chmod(0o755)
        return str(self.path / name)

    def run_program(self, program, *arguments, python_path=None):
        environment = {**os.environ, "PYTHONPATH": python_path or "", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, str(program), *arguments], capture_output=True, text=True,
                              env=environment, timeout=100)


class Compare(Fixture):
    def compare(self, *arguments):
        peer, gpt = self.write("peer.py", FAKE_PEER), self.write("gpt", FAKE_GPT)
        return self.run_program(COMPARE, "--peer", peer, "--gpt", gpt + " --extra flag", *SIZES, *arguments)

    def log(self):
        return [json.loads(line) for line in (self.path / "log").read_text().splitlines()]

    def test_measures_all_in_turns(self):
        result = self.path / "result.json"
        done = self.compare("--rounds", "2", "--steps", "5", "--json", str(result))
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(result.read_text())
        rows = {row["name"]: row for row in report["summary"]}
        self.assertEqual(len(rows), 4 + 16)
        ours = rows["ours stage 2, graph"]
        self.assertEqual(ours["ms_per_step_median"], 8.0)
        self.assertEqual(ours["times_as_fast_as_eager"], 5.0)  # the faster of 40 and 50
        self.assertEqual(ours["times_as_fast_as_compiled"], 2.5)  # the faster of 30 and 20
        self.assertEqual(ours["device_bytes"], 4000000)
        self.assertEqual(ours["runs"], 2)
        # 2 blocks of 12 C^2 + 13 C, 300 tokens and the last norm; 12 L C T.
        flops = 6 * (2 * (12 * 64 + 13 * 8) + 302 * 8) + 12 * 2 * 8 * 16
        self.assertEqual(report["flops_per_token"], flops)
        self.assertAlmostEqual(ours["mfu"], flops * (4 * 16 / 0.008) / 1e14)
        self.assertRegex(done.stdout, r"ours stage 2, graph +8\.00 +8\.00\.\.8\.00 +8000 ")
        self.assertIn("ceilings: 100.0 TFLOP/s of bf16 products, 1000 GB/s", done.stdout)

        self.assertEqual(rows["ours stage 2, tuned"]["ms_per_step_median"], 9.0)
        self.assertEqual(rows["ours stage 2, graph, tuned"]["ms_per_step_median"], 7.0)
        self.assertEqual((self.path / "choices").read_text(), 16 * ".")  # one file for all

        order = [flags for flags in self.log() if "--probe" not in flags]
        self.assertEqual(len(order), 2 * (1 + 20))
        self.assertIn("--ceilings", order[0])
        self.assertIn("--ceilings", order[21])
        without_report = [[word for word in flags[:-1]] for flags in order]
        self.assertEqual(without_report[1:21], without_report[22:][::-1])  # every other round is reversed

    def test_gives_our_program_its_flags(self):
        done = self.compare("--rounds", "1", "--steps", "5", "--stages", "3", "--cuda-graph", "on", "--tuned", "off")
        self.assertEqual(done.returncode, 0, done.stderr)
        flags = self.log()[-1]
        self.assertEqual(flags[1:3], ["--extra", "flag"])
        for expected in (["--zero", "3"], ["--device", "cuda"], ["--dtype", "bf16"], ["--vocab", "300"],
                         ["--steps", "6"], ["--sample-tokens", "0"]):
            self.assertIn(expected, [flags[i:i + 2] for i in range(len(flags))])
        self.assertIn("--cuda-graph", flags)
        for unexpected in ("--gemm-choices", "--on-non-finite", "--vocab-multiple"):
            self.assertNotIn(unexpected, flags)

    def test_tunes_our_program(self):
        done = self.compare("--rounds", "1", "--stages", "0", "--cuda-graph", "off", "--tuned", "on")
        self.assertEqual(done.returncode, 0, done.stderr)
        flags = self.log()[-1]
        self.assertIn(["--on-non-finite", "ignore"], [flags[i:i + 2] for i in range(len(flags))])
        self.assertIn("--gemm-choices", flags)
        self.assertRegex(done.stdout, r"ours stage 0, tuned +9\.00")

    def test_pads_the_logits_of_both(self):
        done = self.compare("--rounds", "1", "--stages", "0", "--vocab-multiple", "64")
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = [" ".join(flags) for flags in self.log() if "--batch" in flags]
        ours = [run for run in runs if "--vocab 300 " in run and "--vocab-multiple 64 " in run]
        theirs = [run for run in runs if "--vocabulary 320 " in run]
        self.assertEqual((len(ours), len(theirs), len(runs)), (4, 4, 8))

    def test_goes_on_without_what_fails(self):
        self.write("fail", "")
        done = self.compare("--rounds", "2", "--stages", "0,3", "--cuda-graph", "off", "--tuned", "off")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ours stage 3: ", done.stderr)
        self.assertIn("error: stage 3 does not want to", done.stderr)
        self.assertRegex(done.stdout, r"ours stage 0 +10\.00")
        self.assertEqual(sum(flags[-3:-1] == ["3", "--report"] for flags in self.log()), 1)  # not tried again

    def test_notices_other_work(self):
        self.write("half", "")
        done = self.compare("--rounds", "1", "--stages", "0", "--cuda-graph", "off", "--tuned", "off")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ours stage 0: it does 32 tokens per step, expected 64: not the same work", done.stderr)

    def test_torch_only(self):
        done = self.compare("--rounds", "1", "--torch-only", "--compile-modes", "default", "--precisions", "master")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("ours stage", done.stdout)
        self.assertRegex(done.stdout, r"torch compile default, master .* - +1\.00\n")

    def test_rejects_wrong_flags(self):
        for flags, expected in [
            (["--stages", "0,4"], "argument --stages: got '4', expected some of 0, 1, 2, 3"),
            (["--cuda-graph", "yes"], "argument --cuda-graph: got 'yes', expected some of off, on"),
            (["--steps", "0"], "argument --steps: got 0, expected at least 1"),
            (["--vocabulary", "70000"], "--vocabulary: got 70000, expected at most 65536"),
            (["--vocabulary", "65530", "--vocab-multiple", "100"], "--vocabulary: got 65530 in multiples of 100"),
            (["--tuned", "yes"], "argument --tuned: got 'yes', expected some of off, on"),
            (["--heads", "5"], "--heads: got 5, expected a divisor of --embd 8"),
            (["--json", "/no/such/directory/x"], "--json: there is no directory for /no/such/directory/x"),
            (["--gpt", "no_such_program --flag"], "--gpt: no program 'no_such_program --flag'"),
        ]:
            done = self.compare(*flags)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(expected, done.stderr)

    def test_reports_a_broken_peer(self):
        peer = self.write("peer.py", "import sys; sys.exit('broken')")
        done = self.run_program(COMPARE, "--peer", peer)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "--probe: exit code 1\nbroken")


class Skip(Fixture):
    """What is missing is said in one line, by the comparison and by the peer alone."""

    def expect_skipped(self, torch, reason):
        if torch is not None:
            self.write("torch.py", torch)
        for program in (COMPARE, PEER):
            done = self.run_program(program, python_path=str(self.path))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, f"^SKIPPED: {reason}\n$")
            self.assertEqual(done.stderr, "")

    def test_without_an_interpreter(self):
        done = self.run_program(COMPARE, "--python", "/no/python")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "SKIPPED: there is no interpreter /no/python (No such file or directory)\n")

    def test_without_torch(self):
        self.expect_skipped("raise ImportError('not here')", r".* cannot import torch \(not here\)")

    def test_without_a_library_of_torch(self):
        self.expect_skipped("raise OSError('libcudart.so')", r".* cannot import torch \(libcudart.so\)")

    def test_without_cuda(self):
        self.expect_skipped("class version: cuda = None\n__version__ = '2.9'", "PyTorch 2.9 was built without CUDA")

    def fake_torch(self, version="2.9.1+cu130", available=True, capability=(9, 0)):
        return (f"__version__ = {version!r}\nclass version: cuda = '13.0'\nclass cuda:\n"
                f"  is_available = staticmethod(lambda: {available})\n"
                f"  get_device_capability = staticmethod(lambda: {capability})\n"
                "  get_device_name = staticmethod(lambda: 'a GPU')\n")

    def test_without_a_gpu(self):
        self.expect_skipped(self.fake_torch(available=False), "PyTorch 2.9.1.cu130 finds no GPU that it can use .*")

    def test_with_an_old_torch(self):
        self.expect_skipped(self.fake_torch(version="2.2.0"), "PyTorch is 2.2.0, expected 2.3 or newer")

    def test_with_an_old_gpu(self):
        self.expect_skipped(self.fake_torch(capability=(7, 5)), "a GPU has no bf16; expected compute .*")

    def test_finds_what_is_there(self):
        self.write("torch.py", self.fake_torch())
        done = self.run_program(PEER, "--probe", python_path=str(self.path))
        self.assertEqual(json.loads(done.stdout),
                         {"reason": None, "gpu": "a GPU", "torch": "2.9.1+cu130", "cuda": "13.0"})


if __name__ == "__main__":
    unittest.main()
