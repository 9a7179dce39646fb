#!/usr/bin/env bash
# save_signals_test.sh RECIPE GPT: signals to a running program, as a user or a batch system sends
# them: to the program that was started, and to one rank. USR1 saves at one step and goes on, TERM
# saves and ends with exit code 0; what was saved resumes with the bits of the run that nobody
# disturbed. And: two jobs in one directory, checkpoints that come faster than the disk takes them.
set -uo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
recipe=./$1 gpt=./$2
directory=$(mktemp -d) || exit 1
program=
trap 'kill -KILL $program 2>/dev/null; rm -rf "$directory"' EXIT
flags=(--layers 4 --width 60 --micro-batches 2)
saved=$directory/saved

fail() {
  echo "FAILED: $*" >&2
  tail -n 30 "$directory/out" "$directory/err" >&2
  exit 1
}

in_background() { # COMMAND...: until it has done a step
  : >"$directory/out"
  "$@" >"$directory/out" 2>"$directory/err" &
  program=$!
  wait_for "$directory/out" '^step'
}

start() { # ARG...
  in_background "$recipe" "${flags[@]}" --steps 1000000 "$@"
}

wait_for() { # FILE PATTERN
  local i
  for ((i = 0; i < 300; ++i)); do
    ! grep -q -- "$2" "$1" || return 0
    kill -0 $program 2>/dev/null || fail "it ended by itself"
    sleep 0.1
  done
  fail "no '$2' in 30 s"
}

ends_with() { # CODE
  wait $program
  local got=$?
  program=
  [[ $got == "$1" ]] || fail "exit code $got, expected $1"
}

pid_of_rank() { # RANK, of the program
  local pids=$program pid
  while [[ -n $pids ]]; do
    for pid in $pids; do
      { tr '\0' '\n' <"/proc/$pid/environ"; } 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1" &&
        echo "$pid" && return
    done
    pids=$(for pid in $pids; do cat "/proc/$pid"/task/*/children 2>/dev/null; done)
  done
}

names() { ls "$saved" | grep -c '^step-'; }

for case in "--ranks 1" "--ranks 2 --zero 3" "--ranks 2 --zero 1 --save-async" \
  "--ranks 2 --zero 2 --save-async --overlap unlimited --bucket-mb 0.01" "--ranks-in-process 2"; do
  for target in program rank; do
    [[ $target == program || $case == *"--ranks 2"* ]] || continue
    rm -rf "$saved"
    # shellcheck disable=SC2086
    start $case --save "$saved" --log-level warn
    receiver=$program
    [[ $target == program ]] || receiver=$(pid_of_rank 1)
    kill -USR1 "$receiver"
    wait_for "$directory/out" "^saved in $saved/step-"
    [[ $(names) == 1 ]] || fail "$case, $target: one signal, $(names) checkpoints"
    first=$(cat "$saved/latest")
    [[ $(sed -n 's/^saved in .*\///p' "$directory/out") == "$first" ]] || fail "another name"
    kill -TERM "$receiver"
    ends_with 0
    [[ ! -s $directory/err ]] || fail "$case, $target: standard error is not empty"
    last=$(cat "$saved/latest")
    [[ $last != "$first" && $(names) == 2 ]] || fail "$case, $target: TERM saved nothing"
    step=$((10#${last#step-}))
    grep -qx "ended by a signal after step $step; saved in $saved/$last" "$directory/out" ||
      fail "$case, $target: it does not say where"
    # The report's parts are there although the run ended early.
    grep -q '^  parameters' "$directory/out" || fail "$case, $target: no summary"
  done
done

# mpirun handles a second TERM: it ends the ranks that wait for a stopped one.
rm -rf "$saved"
start --ranks 2 --save "$saved"
kill -STOP "$(pid_of_rank 1)"
kill -TERM $program
sleep 0.5
kill -0 $program 2>/dev/null || fail "it did not wait for its ranks"
kill -TERM $program
wait $program && fail "exit code 0 although it was ended from outside"
program=

# Without --save, USR1 causes one warning, and TERM ends the job as usual.
for ranks in 1 2; do
  start --ranks $ranks
  kill -USR1 $program
  wait_for "$directory/err" "^warning: SIGUSR1: nothing is saved; give --save DIR for a place"
  kill -TERM $program
  wait $program && fail "TERM without --save: exit code 0"
  program=
  (($(grep -c "warning" "$directory/err") == 1)) || fail "not one warning"
done

# Another job may not save into the directory; it says so and leaves it alone.
rm -rf "$saved"
start --ranks 2 --save "$saved"
for ranks in 1 2; do
  "$recipe" "${flags[@]}" --ranks $ranks --save "$saved" >"$directory/second.out" 2>"$directory/second.err" &&
    fail "two jobs in one directory"
  grep -q -- "--save: $saved: another job saves into it; give each job a directory" "$directory/second.err" ||
    fail "another message: $(cat "$directory/second.err")"
done
kill -TERM $program
ends_with 0

# A checkpoint after every step: each waits for the one before, all are the bytes of the others' run.
run() { # NAME ARG...
  local name=$1
  shift
  "$recipe" "${flags[@]}" --steps 5 --save-every 1 --save "$directory/$name" "$@" \
    >"$directory/out" 2>"$directory/err" || fail "$name: $?"
}
run waited --ranks 1
run async --ranks 2 --zero 2 --save-async --report "$directory/async.json"
(($(grep -c '^step .: training waited .* ms for the checkpoint of step' "$directory/out") == 4)) ||
  fail "it does not say that it waits"
grep -q '^  host memory for saving, beside the arena: ' "$directory/out" || fail "no price"
grep -q '"saving": [1-9]' "$directory/async.json" || fail "no price in the report"
diff -r "$directory/waited" "$directory/async" >"$directory/err" || fail "other bytes"

# TERM in the middle of a GPT: no sample at the end. It goes on with the same bits.
gpt_flags=(--layers 2 --heads 2 --embd 32 --context 32 --batch 2 --micro-batches 4 --steps 400
  --eval-windows 8 --sample-tokens 20)
rm -rf "$saved"
in_background "$gpt" "${gpt_flags[@]}" --ranks 2 --zero 2 --save "$saved"
kill -TERM $program
ends_with 0
grep -q "^ended by a signal after step" "$directory/out" || fail "gpt was not ended"
! grep -q "continues the validation" "$directory/out" || fail "a sample after TERM"
"$gpt" "${gpt_flags[@]}" --resume "$saved" --report "$directory/resumed.json" >"$directory/out" 2>&1 ||
  fail "gpt does not resume"
"$gpt" "${gpt_flags[@]}" --report "$directory/whole.json" >"$directory/out" 2>&1 || fail "gpt"
python3 - "$directory" <<'PYTHON' || fail "other bits than those of the run that nobody ended"
import json
import pathlib
import sys

whole, resumed = (json.loads(pathlib.Path(sys.argv[1], name).read_text()) for name in ["whole.json", "resumed.json"])
assert whole["final"] == resumed["final"]
losses = [[step["loss"] for step in report["steps"]] for report in (whole, resumed)]
assert 0 < len(losses[1]) < len(losses[0]) and losses[0][-len(losses[1]):] == losses[1]
PYTHON

# A TERM before training has begun ends the job, at whatever moment.
for delay in 0.01 0.02 0.04 0.06 0.09 0.13; do
  rm -rf "$saved"
  : >"$directory/out"
  "$recipe" "${flags[@]}" --steps 1000000 --ranks 2 --save "$saved" >"$directory/out" 2>"$directory/err" &
  program=$!
  sleep $delay
  kill -TERM $program
  for ((i = 0; i < 150; ++i)); do
    kill -0 $program 2>/dev/null || break
    sleep 0.1
  done
  ! kill -0 $program 2>/dev/null || fail "a TERM after $delay s was lost"
  wait $program
  program=
done
