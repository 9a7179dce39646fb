#!/usr/bin/env python3
"""random_kills_test.py LAUNCH RECIPE [--moments N] [--seed S]

Kills (SIGKILL) a rank, or a process that watches over the ranks, of a job that saves all the time,
at random moments: half of them inside a save, half while it saves in the background, half with collectives beside
the computation. After each kill all processes of the job must end within 10 s, every checkpoint under its final name
must be complete, and the job must continue from there, by itself or restarted, to the bits of a run that was not killed.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT_S = 10
STEPS = 60
RECIPE_FLAGS = ["--layers", "4", "--width", "60", "--batch", "4", "--micro-batches", "2", "--steps", str(STEPS)]
VICTIMS = ["rank 0", "rank 1", "launch", "supervisor", "mpirun"]


def read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:  # the process has ended
        return b""


def processes_with(text):
    """PIDs of the running processes whose command line has `text`."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid() or text.encode() not in read(f"/proc/{entry}/cmdline"):
            continue
        if b"State:\tZ" not in read(f"/proc/{entry}/status"):
            found.append(int(entry))
    return found


def children(pid):
    return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children").split()]


def rank_of(pid):
    for variable in read(f"/proc/{pid}/environ").split(b"\0"):
        if variable.startswith(b"OMPI_COMM_WORLD_RANK="):
            return int(variable.split(b"=")[1])
    return None


class Job:
    """One job of tools/launch, in a directory of its own."""

    def __init__(self, launch, recipe, directory, flags=()):
        self.saved = directory / "saved"
        self.report = directory / "report.json"
        self.log = directory / "log"
        self.recipe = recipe
        self.command = [launch, "--ranks", "2", "--", recipe, *RECIPE_FLAGS, "--zero", "3", "--report", str(self.report),
                        "--save", str(self.saved), "--save-every", "2", *flags]

    def start(self):
        resume = ["--resume", str(self.saved)] if (self.saved / "latest").exists() else []
        self.process = subprocess.Popen(self.command + resume, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=open(self.log, "ab"))

    def pids(self):
        return processes_with(str(self.saved))

    def ranks(self):
        """PIDs of the running ranks by rank."""
        recipes = [pid for pid in self.pids() if read(f"/proc/{pid}/cmdline").startswith(self.recipe.encode())]
        return {rank_of(pid): pid for pid in recipes if rank_of(pid) is not None}

    def find(self, victim):
        """The PID, or None: it has not started yet."""
        if victim.startswith("rank"):
            return self.ranks().get(int(victim.split()[1]))
        pid = self.process.pid
        for generation in ["launch", "supervisor", "mpirun"]:
            if generation == victim:
                return pid
            next_pids = children(pid)
            if not next_pids:
                return None
            pid = next_pids[0]

    def is_saving(self):
        return any(self.saved.glob("*.tmp"))

    def check_checkpoints(self):
        """Checks that everything under a checkpoint's name is complete. Returns how many there are."""
        count = 0
        for checkpoint in self.saved.glob("step-*"):
            if checkpoint.suffix == ".tmp":
                continue
            files = json.loads((checkpoint / "checksums.json").read_text())["files"]
            assert len(files) == 5, f"{checkpoint}: {len(files)} files"
            for name, expected in files.items():
                data = (checkpoint / name).read_bytes()
                assert len(data) == expected["bytes"], f"{checkpoint}/{name}: {len(data)} bytes"
                assert hashlib.sha256(data).hexdigest() == expected["sha256"], f"{checkpoint}/{name}: other bytes"
            count += 1
        latest = self.saved / "latest"
        if latest.exists():
            assert (self.saved / latest.read_text().strip()).is_dir(), "latest names what is not there"
        return count


def wait_until(condition, limit_s, what):
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"not within {limit_s} s: {what}"
        time.sleep(0.005)


def kill_once(job, victim, delay_s, in_save, whole):
    """Returns what happened, or None if the job was done before its moment came."""
    job.start()
    is_done = lambda: job.process.poll() is not None
    time.sleep(delay_s)
    wait_until(lambda: is_done() or (job.find(victim) and (not in_save or job.is_saving())), 30, f"{victim} is there")
    pid = job.find(victim)
    if is_done() or pid is None:
        job.process.wait()
        return None
    before = job.pids()
    was_saving = job.is_saving()
    temporary = {variable[7:].decode() for rank in job.ranks().values()
                 for variable in read(f"/proc/{rank}/environ").split(b"\0") if variable.startswith(b"TMPDIR=/tmp/zg.")}
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        job.process.wait()
        return None

    goes_on = victim.startswith("rank") or victim == "mpirun"
    start = time.monotonic()
    # If the job goes on, the launcher and its supervisor stay.
    staying = {job.process.pid, *children(job.process.pid)} if goes_on else set()
    if goes_on:
        wait_until(lambda: not (set(before) - staying) & set(job.pids()), LIMIT_S, f"all ranks end after {victim}'s kill")
    else:
        job.process.wait()
        wait_until(lambda: not job.pids(), LIMIT_S, f"all processes end after {victim}'s kill")
    seconds = time.monotonic() - start
    count = job.check_checkpoints()

    if goes_on:
        assert job.process.wait(timeout=60) == 0, "the restarted job failed"
    else:
        assert job.process.returncode != 0, f"exit code 0 after {victim} was killed"
        job.start()
        assert job.process.wait(timeout=60) == 0, "the job that was started again failed"
    assert job.check_checkpoints() > 0
    for directory in temporary:
        assert not os.path.exists(directory), f"{directory} is left behind"
    final = json.loads(job.report.read_text())["final"]
    assert final == whole, f"other bits: {final}, expected {whole}"
    return f"{victim} after {delay_s:.2f} s{', inside a save' if was_saving else ''}: gone in {seconds:.2f} s, {count} checkpoints whole"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("launch")
    parser.add_argument("recipe")
    parser.add_argument("--moments", type=int, default=8)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    arguments = parser.parse_args()
    launch, recipe = os.path.abspath(arguments.launch), os.path.abspath(arguments.recipe)
    print(f"--seed {arguments.seed}", flush=True)
    generator = random.Random(arguments.seed)
    # Open MPI's leaks are not ours (see tools/mpi_test.sh).
    os.environ["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_leaks=0"]))

    with tempfile.TemporaryDirectory() as scratch:
        job = Job(launch, recipe, pathlib.Path(scratch, "whole"))
        job.saved.parent.mkdir()
        start = time.monotonic()
        job.start()
        assert job.process.wait() == 0, job.log.read_text()
        duration_s = time.monotonic() - start
        whole = json.loads(job.report.read_text())["final"]

        moment = 0
        while moment < arguments.moments:
            directory = pathlib.Path(scratch, "killed")
            directory.mkdir()
            flags = ["--save-async"] if generator.random() < 0.5 else []
            if generator.random() < 0.5:
                flags += ["--overlap", "unlimited", "--bucket-mb", "0.01"]
            job = Job(launch, recipe, directory, flags)
            victim = VICTIMS[moment % len(VICTIMS)]
            in_save = generator.random() < 0.5
            try:
                outcome = kill_once(job, victim, generator.random() * duration_s * 0.9, in_save, whole)
            except Exception:
                print(f"FAILED: moment {moment}, {victim}, --seed {arguments.seed}; standard error was:", file=sys.stderr)
                print(job.log.read_text(), file=sys.stderr)
                for pid in job.pids():
                    os.kill(pid, 9)
                raise
            if outcome:
                moment += 1
                print(f"{moment}: {outcome} {' '.join(flags)}", flush=True)
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
