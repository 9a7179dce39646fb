#!/usr/bin/env bash
# killed_save_test.sh RECIPE: a program saves after every step, and a rank or the launcher is killed at
# some moment, again and again. Each time the run resumes from the directory's contents and ends with
# the bits of a run that was not killed.
set -uo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
recipe=./$1
directory=$(mktemp -d) || exit 1
program=
trap 'kill $program 2>/dev/null; rm -rf "$directory"' EXIT
flags=(--layers 4 --width 60 --micro-batches 2)
saved=$directory/saved

fail() {
  echo "FAILED: $*" >&2
  cat "$directory/out" "$directory/err" >&2
  exit 1
}

descendants() { # PID
  local child
  for child in $(cat "/proc/$1"/task/*/children 2>/dev/null); do
    echo "$child"
    descendants "$child"
  done
}

# Prints the ranks of our own job only: PID RANK, one a line.
ranks_of() { # PID of the launcher
  local pid rank
  for pid in $(descendants "$1"); do
    rank=$({ tr '\0' '\n' <"/proc/$pid/environ"; } 2>/dev/null | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')
    [[ -z $rank ]] || echo "$pid $rank"
  done
}

is_running() { # PID: as one of our job
  ! grep -qs '^State:[[:space:]]*Z' "/proc/$1/status" &&
    { tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null | grep -qF -- "$saved"
}

resume=()
for victim_and_flag in "1 --save-async" "0" "launcher --save-async" "1" "0 --save-async"; do
  read -r victim flag <<<"$victim_and_flag"
  before=$(cat "$saved/latest" 2>/dev/null)
  "$recipe" "${flags[@]}" --ranks 2 --zero 3 --steps 100000 --save "$saved" --save-every 1 --keep 2 $flag \
    "${resume[@]}" >"$directory/out" 2>"$directory/err" &
  program=$!
  for ((i = 0; i < 300; ++i)); do # until it has saved something
    [[ $(cat "$saved/latest" 2>/dev/null) == "$before" ]] || break
    kill -0 $program 2>/dev/null || fail "it ended by itself"
    sleep 0.1
  done
  sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
  ranks=$(ranks_of $program)
  (($(wc -l <<<"$ranks") == 2)) || fail "expected two ranks, got: $ranks"
  if [[ $victim == launcher ]]; then
    kill -KILL $program
  else
    kill -KILL "$(sed -n "s/ $victim\$//p" <<<"$ranks")"
  fi
  wait $program 2>/dev/null && fail "exit code 0 after $victim was killed"
  program=
  for pid in $(cut -d ' ' -f 1 <<<"$ranks"); do
    for ((i = 0; i < 100; ++i)); do
      is_running "$pid" || continue 2
      sleep 0.1
    done
    fail "a rank is still there 10 s after $victim was killed"
  done
  resume=(--resume "$saved")
done

latest=$(cat "$saved/latest")
steps=$((10#${latest#step-} + 2))
"$recipe" "${flags[@]}" --ranks 1 --steps $steps "${resume[@]}" --report "$directory/resumed.json" \
  >"$directory/out" 2>"$directory/err" || fail "it does not resume"
"$recipe" "${flags[@]}" --ranks 1 --steps $steps --report "$directory/whole.json" \
  >"$directory/out" 2>"$directory/err" || fail "the run that nobody killed"
python3 - "$directory" <<'PYTHON' || fail "other bits than those of the run that nobody killed"
import json
import pathlib
import sys

reports = [json.loads(pathlib.Path(sys.argv[1], name).read_text()) for name in ["whole.json", "resumed.json"]]
assert reports[0]["final"] == reports[1]["final"]
losses = [[step["loss"] for step in report["steps"]] for report in reports]
assert losses[0][-2:] == losses[1], losses
PYTHON
