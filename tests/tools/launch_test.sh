#!/usr/bin/env bash
# launch_test.sh LAUNCH JOB_PROGRAM RECIPE: tests what tools/launch does and prints when a job fails, is
# refused or is stopped: it restarts with the right number of ranks from the right checkpoint, or not at
# all. A restarted job must have the bits of an undisturbed one.
set -uo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
launch=./$1 job_program=./$2 recipe=$PWD/$3
[[ $1 != /* ]] || launch=$1
[[ $2 != /* ]] || job_program=$2
[[ $3 != /* ]] || recipe=$3
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out
err=$scratch/err
failed=0

fail() {
  echo "FAILED: $*" >&2
  head -n 60 "$out" "$err" >&2
  failed=1
}

run() { timeout -k 5 60 "$launch" "$@" >"$out" 2>"$err"; }
says() { grep -qF -- "$1" "$err" || fail "no '$1'"; }
says_not() { ! grep -qF -- "$1" "$err" || fail "'$1' is there"; }

# No failure: the program's output, and nothing else.
run --ranks 2 -- "$job_program" --log-level warn || fail "a job without faults ended with $?"
(($(grep -c '^rank . of 2 is process' "$out") == 2)) || fail "2 ranks did not start"
[[ ! -s $err ]] || fail "standard error is not empty"

# Who failed, how, where, and its last words.
expect() { # CODE TEXT ARG...: of a job without restarts
  local code=$1 text=$2 got=0
  shift 2
  run --ranks 2 --max-restarts 0 -- "$job_program" "$@" || got=$?
  ((got == code)) || fail "$*: exit code $got, expected $code"
  says "launch: $text"
  says "no restarts are allowed"
}
host=$(uname -n)
expect 137 "rank 1 on host $host was ended by signal 9 (Killed)" --do kill --on-rank 1
grep -q '^  | rank 1 of 2 is process' "$err" || fail "the last lines of rank 1 are not shown"
! grep -q '^  | rank 0' "$err" || fail "the last lines of rank 0 are shown"
expect 3 "rank 0 on host $host ended with exit code 3" --do exit-3 --on-rank 0
expect 1 "rank 1 on host $host left the job before its end" --do leave --on-rank 1
expect 1 "rank 1 on host $host ended the job with an error" --do fail --on-rank 1
grep -q '^  | rank 1: data loss: something is broken' "$err" || fail "the rank's error is not shown"

# mpirun 4.1 sometimes loses its own message about an abort; the rank's message is there.
mkdir "$scratch/bin"
cat >"$scratch/bin/mpirun" <<'END'
#!/bin/sh
echo "[1,0]<stdout>:rank 0 of 2 is process 5"
echo "[1,1]<stderr>:rank 1: data loss: something is broken" >&2
echo "[vm:00115] [[27789,0],0] ORTE_ERROR_LOG: Data unpack had inadequate space" >&2
exit 1
END
chmod +x "$scratch/bin/mpirun"
PATH=$scratch/bin:$PATH expect 1 "rank 1 on host $host ended the job with an error"
grep -q '^  | rank 1: data loss: something is broken' "$err" || fail "the rank's error is not shown"

# A wrong command line is not tried again.
run --ranks 2 -- "$job_program" --zero 9
[[ $? == 2 ]] || fail "--zero 9: not exit code 2"
says "the program refuses its command line"
says_not "restart 1"
run --ranks 2 -- "$job_program" --ranks 2
[[ $? == 2 ]] || fail "--ranks for the program: not exit code 2"

# A mesh has its number of ranks in every attempt.
run --ranks 4 -- "$job_program" --log-level warn --mesh data=2,tensor=2 --micro-batches 2 || fail "--mesh ended with $?"
(($(grep -c '^rank . of 4 is process' "$out") == 4)) || fail "--mesh: 4 ranks did not start"
run --ranks 4 --min-ranks 2 -- "$job_program" --mesh data=2,tensor=2
[[ $? == 2 && ! -s $out ]] || fail "--min-ranks with --mesh: not exit code 2 at once"
says "--min-ranks: got 2, but the program's --mesh data=2,tensor=2 has the 4 --ranks in every attempt"

# Without checkpoints a restart begins again, and says so.
run --ranks 2 --max-restarts 1 -- "$job_program" --do kill --on-rank 1
[[ $? == 137 ]] || fail "not the exit code of the last attempt"
says "restart 1 of 1 in 1 s, from the beginning: the program does not --save"
says "1 restart is used up"
(($(grep -c '^[12]  .*was ended by signal 9' "$err") == 2)) || fail "no table of two attempts"

# The recipe: rank 1 is killed after a checkpoint in the first attempt and fails at once in the second,
# so the third attempt has one rank less.
cat >"$scratch/flaky" <<'FLAKY'
#!/usr/bin/env bash
if [[ $OMPI_COMM_WORLD_RANK == 0 ]]; then
  echo "$OMPI_COMM_WORLD_SIZE $*" >>"${0%/*}/attempts"
  exec "$RECIPE" "$@"
fi
[[ $* != *--resume* ]] || exit 3
"$RECIPE" "$@" &
until [[ -e $SAVE/latest ]]; do sleep 0.02; done
kill -KILL $! $$
FLAKY
chmod +x "$scratch/flaky"
export RECIPE=$recipe SAVE=$scratch/saved
flags=(--layers 3 --width 40 --batch 4 --zero 2)
steps=(--steps 600)
saving=(--save "$SAVE" --save-every 20)
run --ranks 2 --min-ranks 1 -- "$scratch/flaky" "${flags[@]}" "${steps[@]}" "${saving[@]}" --report "$scratch/restarted.json" ||
  fail "the restarted job ended with $?"
says "restart 1 of 3 in 1 s, from step-"
says "restart 2 of 3, with 1 instead of 2 ranks because the last one saved nothing new"
grep -q '^3 .* 1 .* step-.* finished$' "$err" || fail "the last line of the table is not the third attempt"
resume="--resume $SAVE"
report="--report $scratch/restarted.json"
[[ $(cat "$scratch/attempts") == "2 ${flags[*]} ${steps[*]} ${saving[*]} $report
2 ${flags[*]} ${steps[*]} ${saving[*]} $report $resume
1 ${flags[*]} ${steps[*]} ${saving[*]} $report $resume --micro-batches 2" ]] ||
  fail "other attempts: $(cat "$scratch/attempts")"
"$recipe" "${flags[@]}" "${steps[@]}" --ranks 2 --report "$scratch/whole.json" >"$out" 2>"$err" || fail "the whole run: $?"
python3 - "$scratch" <<'PYTHON' || fail "other bits than those of the run that was not restarted"
import json
import pathlib
import sys

whole, restarted = (json.loads(pathlib.Path(sys.argv[1], f"{name}.json").read_text()) for name in ["whole", "restarted"])
assert len(restarted["steps"]) < len(whole["steps"]), "it began again"
assert whole["final"] == restarted["final"]
PYTHON

# Another job's checkpoint in the directory is not resumed, neither at first nor after a failure.
cat >"$scratch/fails_once" <<'FAILS_ONCE'
#!/usr/bin/env bash
mkdir "${0%/*}/failed" 2>/dev/null && exit 3
exec "$RECIPE" "$@"
FAILS_ONCE
chmod +x "$scratch/fails_once"
run -- "$scratch/fails_once" "${flags[@]}" "${steps[@]}" --micro-batches 2 "${saving[@]}" --report "$scratch/restarted.json" ||
  fail "in another job's directory: $?"
says "has step-00000600 of another job, which this one does not resume"
says "in 1 s, from the beginning"
(($(grep -c '"step":' "$scratch/restarted.json") == 600)) || fail "it resumed another job's checkpoint"

# Signals to the launcher reach the job, which is then not restarted; none outlives it.
expect_nothing_left() {
  local i pid directory
  directory=$(sed -n 's/^temporary directory \(\/tmp\/zg\..*\)/\1/p' "$out")
  for ((i = 0; i < 100; ++i)); do
    for pid in $(sed -n 's/^rank .* is process \([0-9]*\),.*/\1/p' "$out"); do
      # A killed launcher's ranks may stay zombies if no process adopts them.
      ! grep -qs '^State:[[:space:]]*[^Z]' "/proc/$pid/status" || { sleep 0.1; continue 2; }
    done
    [[ ! -d $directory ]] || { sleep 0.1; continue; }
    return
  done
  fail "$1: something is left behind"
}
signal() { # NAME CODE
  : >"$out"
  "$launch" --ranks 2 -- "$job_program" --steps 10000 --step-ms 10 >"$out" 2>"$err" &
  local launcher=$! i got=0
  for ((i = 0; i < 100; ++i)); do
    ! grep -q '^step' "$out" || break
    sleep 0.1
  done
  kill -s "$1" $launcher
  wait $launcher 2>/dev/null || got=$?
  ((got == $2)) || fail "SIG$1: exit code $got, expected $2"
  (($(grep -c '^step' "$out") < 10000)) || fail "SIG$1: the job went on"
  says_not "restart"
  expect_nothing_left "SIG$1"
}
signal INT 1
signal TERM 1
signal USR1 0 # job_program ends its steps at USR1
signal KILL 137

# At TERM the recipe saves and ends: that is no failure.
rm -rf "$SAVE"
: >"$out"
"$launch" --ranks 2 -- "$recipe" "${flags[@]}" --steps 100000000 --save "$SAVE" >"$out" 2>"$err" &
launcher=$!
for ((i = 0; i < 100; ++i)); do
  ! grep -q '^step' "$out" || break
  sleep 0.1
done
kill -TERM $launcher
wait $launcher || fail "SIGTERM with --save: exit code $?"
[[ -e $SAVE/latest ]] || fail "SIGTERM with --save: nothing is saved"
says_not "restart"
exit $failed
