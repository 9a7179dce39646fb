#!/usr/bin/env python3
"""instruction_sets_test.py REFERENCE PROGRAM...: training gives the same bits on every processor.

Trains each model as if the processor had no more than ZG_INSTRUCTION_SET says, and compares the
parameters' SHA-256 with those in REFERENCE (param_sha256.json), which were made on a processor with
AVX-512. In bf16 the promise ends at AVX-512: products of pairs and of tiles have bits of their own.
To make the file again, after a change that is meant to change bits: with --update in front.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

UPDATE = "--update" in sys.argv
REFERENCE, *PROGRAMS = [pathlib.Path(path).absolute() for path in sys.argv[1:] if path != "--update"]

# The flags that a processor needs for each, as named in /proc/cpuinfo.
INSTRUCTION_SETS = {
    "baseline": [],
    "avx2": ["avx2", "fma", "bmi2"],
    "avx512": ["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
    "amx": [],  # no cap
}
# Makes the C library do without as well: it has functions of its own for processors with FMA.
OLD_LIBRARY = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F"}

GPT = ["--layers", "2", "--heads", "2", "--embd", "64", "--context", "48", "--dropout", "0.1", "--steps", "12",
       "--batch", "3", "--ranks-in-process", "2", "--zero", "3", "--eval-every", "6", "--eval-windows", "4",
       "--sample-tokens", "20", "--warmup-steps", "3"]
RUNS = {
    "classifier": ["--steps", "20", "--ranks-in-process", "2", "--zero", "2"],
    "recipe": ["--layers", "3", "--width", "200", "--steps", "5", "--ranks-in-process", "3", "--zero", "3",
               "--clip-norm", "1"],
    "gpt": GPT,
    "gpt in f16": GPT + ["--dtype", "f16"],
    "gpt in bf16": GPT + ["--dtype", "bf16"],
    "lstm": ["--hidden", "24", "--layers", "2", "--context", "24", "--steps", "6", "--batch", "2", "--ranks-in-process",
             "2", "--zero", "3", "--sample-tokens", "20"],
    "mamba": ["--context", "24", "--steps", "4", "--batch", "2", "--ranks-in-process", "2", "--zero", "3",
              "--eval-windows", "4", "--sample-tokens", "20"],
}


def text():
    """Words in a pseudo-random order."""
    words = "the optimizer keeps what every rank owns and gathers what it reads before a layer runs".split()
    state, found = 1, []
    for _ in range(3000):
        state = (state * 1103515245 + 12345) % 2**31
        found.append(words[(state >> 16) % len(words)])
    return " ".join(found)


def train(run, instruction_set, environment, directory):
    """The parameters' SHA-256."""
    program = next(path for path in PROGRAMS if path.name == run.split()[0])
    report = directory / "report.json"
    flags = RUNS[run] + ["--report", str(report)]
    if program.name in ("gpt", "lstm", "mamba"):
        flags += ["--data", str(directory / "text.txt")]
    done = subprocess.run(
        [program, *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env={**os.environ, **environment, "ZG_INSTRUCTION_SET": instruction_set})
    if done.returncode != 0:
        sys.exit(f"{run} with {instruction_set}: {done.stdout}")
    return json.loads(report.read_text())["final"]["param_sha256"]


def main():
    has = set(pathlib.Path("/proc/cpuinfo").read_text().split("\nflags", 1)[-1].split("\n", 1)[0].split())
    want = {} if UPDATE else json.loads(REFERENCE.read_text())
    failures = []
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "text.txt").write_text(text())
        for instruction_set, features in INSTRUCTION_SETS.items():
            missing = [feature for feature in features if feature not in has]
            if missing:
                print(f"SKIPPED: {instruction_set}: this processor has no {', '.join(missing)}")
                continue
            for run in RUNS:
                if instruction_set == "amx" and "bf16" in run:
                    continue
                got = train(run, instruction_set, OLD_LIBRARY if instruction_set == "baseline" else {}, directory)
                if want.setdefault(run, got) != got:
                    failures.append(f"{run} with {instruction_set}: {got}, want {want[run]}")
    if UPDATE:
        REFERENCE.write_text(json.dumps(want, indent=2) + "\n")
    if failures:
        sys.exit("\n".join(failures))


main()
