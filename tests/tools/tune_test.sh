#!/usr/bin/env bash
# tune_test.sh EXPECT_ERROR TUNE CLASSIFIER: tests what the program tune runs and prints, with a stand-in
# that reports made-up step times, and once with a program that trains.
set -uo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
absolute() { [[ $1 == /* ]] && echo "$1" || echo "$PWD/$1"; }
expect_error=$(absolute "$1") tune=$(absolute "$2") classifier=$(absolute "$3")
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset BUILD_WORKING_DIRECTORY
failed=0

fail() {
  echo "FAILED: $*" >&2
  head -n 60 out err >&2
  failed=1
}
has() { grep -qE -- "$1" out || fail "no '$1' on standard output"; }
reject() { "$expect_error" "$tune" "$@" || failed=1; } # CODE TEXT -- ARG...

# Two ranks are the fastest here. After its report the stand-in runs longer than this test may take.
cat >stand_in <<'END'
#!/usr/bin/env python3
import json, os, sys, time
flags = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with open(os.path.join(os.path.dirname(sys.argv[0]), "commands"), "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\n")
ranks, threads = int(flags["--ranks"]), int(flags["--threads"])
assert flags.get("--do") != "fail-with-4" or ranks != 4, "error: four are too many"
ms = {1: 120, 2: 40, 4: 45}[ranks] / (1 if ranks > 1 else threads ** 0.5)
if flags.get("--overlap") == "unlimited":
    ms += 2
batch = int(flags.get("--batch", 8))
report = {"inputs": f"x: f32[{batch}]",
          "config": {"batch": batch, "micro-batches": int(flags.get("--micro-batches", ranks))},
          "memory": {"per_rank_peak": [1000] * ranks},
          "steps": [{"ms": ms + (500 if i == 0 else 0)} for i in range(int(flags["--steps"]))]}
with open(flags["--report"] + ".part", "w") as file:
    json.dump(report, file)
os.rename(file.name, flags["--report"])
time.sleep(600)
END
chmod +x stand_in

"$tune" --cores 4 -- ./stand_in --zero 2 --save here --steps 77 >out 2>err || fail "exit code $?"
has '^8 samples per step on 4 cores; 5 rounds in '
has '^  2 +2 +off +4 +2 +40\.0 +200\.0 +1\.0 KB '
has '^  1 +2 +- +8 +1 +84\.9 '
[[ $(tail -n 1 out) == "./stand_in --zero 2 --save here --steps 77 --ranks 2 --threads 2 --overlap off --batch 4 --micro-batches 2" ]] ||
  fail "another command: $(tail -n 1 out)"
(($(sed -n 4p out | awk '{print $6 < 45}'))) || fail "the second line is not the second fastest"
! grep -qE -- '--save|--steps 77' commands || fail "a trial saves, or takes all steps"
(($(grep -c 'ranks 1 --threads 2' commands) == 1)) || fail "what is hopeless is tried again"
(($(grep -c -- '--ranks 2 --threads 2 --overlap off' commands) == 5)) || fail "not five rounds"

"$tune" --cores 4 -- ./stand_in --zero 2 --do fail-with-4 >out 2>err || fail "exit code $?"
has 'left out: 4 ranks x 1 thread, overlap off: it ended with exit code 1: AssertionError: error: four are too many'
BUILD_WORKING_DIRECTORY=$scratch "$tune" --ranks 2 --threads 1 --overlap 5000 --cores 4 --seconds 100 -- ./stand_in >out 2>err ||
  fail "exit code $?"
[[ $(tail -n 1 out) == "./stand_in --ranks 2 --threads 1 --overlap 5000" ]] || fail "not the only way"

# Errors.
reject 2 "hint: tune --help lists all flags" -- --bananas -- ./stand_in
reject 2 "./no-such is not a program that can be run" -- ./no-such
printf '#!/no/such/interpreter\n' >broken
printf '#!/bin/sh\necho "error: --data: nothing there" >&2\necho "hint: look" >&2\nexit 2\n' >refuses
printf '#!/bin/sh\necho done >&2\n' >no_report
printf '#!/bin/sh\nwhile [ $# -gt 1 ]; do [ $1 = --report ] && echo "{}" >$2; shift; done\n' >other_report
printf '#!/bin/sh\nsleep 600\n' >slow
chmod +x broken refuses no_report other_report slow
reject 1 "./broken with 1 rank x 2 threads: it ended with exit code 126: error: it cannot be started: No such file" \
  -- --cores 2 -- ./broken
reject 1 "it ended with exit code 2: error: --data: nothing there" -- ./refuses
reject 1 "it ended without a report (--report); expected a program with a Job; its last line: done" -- ./no_report
reject 1 "its report is not one of a program with a Job" -- ./other_report
reject 1 "--seconds: 1 are too few for 4 steps of ./slow" -- --seconds 1 -- ./slow
"$tune" ./slow >out 2>err &
sleep 0.5
kill -INT $!
wait $!
[[ $? == 1 ]] || fail "SIGINT: not exit code 1"
grep -q 'error: stopped by a signal' err || fail "SIGINT: it does not say so"

# Programs that train: one that follows --batch, in processes and threads of its own.
"$tune" --cores 2 --seconds 60 -- "$classifier" --zero 2 --batch 64 >out 2>err || fail "exit code $?"
has '^64 samples per step on 2 cores; '
has '^  2 +1 +off +32 +2 '
has '^  1 +1 +- +64 +1 '
has '^  1 +2 +- +64 +1 '
tail -n 1 out >command
bash command >out 2>err || fail "the command of the fastest ends with $?"
exit $failed
