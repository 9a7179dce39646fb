#!/usr/bin/env bash
# job_test.sh JOB_PROGRAM EXPECT_ERROR: a program that starts its own ranks: exit codes, one message
# that names the rank, no hang, and nothing left behind.
set -uo pipefail
program=$1
expect_error=$2
[[ $program == */* ]] || program=./$program
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out
err=$scratch/err
failed=0

fail() {
  echo "FAILED: $*" >&2
  head -n 40 "$out" "$err" >&2
  failed=1
}

# The last run, with its output in $out, must leave no process and no directory behind.
expect_nothing_left() {
  local i directory pid
  for ((i = 0; i < 50; ++i)); do
    directory=$(sed -n 's/^temporary directory \(\/tmp\/zg\..*\)/\1/p' "$out" | head -1)
    directory=${directory%$'\r'}
    [[ -z $directory || ! -d $directory ]] || { sleep 0.1; continue; }
    for pid in $(sed -n 's/^rank .* is process \([0-9]*\),.*/\1/p' "$out"); do
      # A killed launcher's ranks may stay zombies if no process adopts them.
      ! grep -qs '^State:[[:space:]]*[^Z]' "/proc/$pid/status" || { sleep 0.1; continue 2; }
    done
    return
  done
  fail "$1: something is left behind: ${directory:-a process}"
}

run() { timeout -k 5 30 "$program" --log-level warn "$@" >"$out" 2>"$err"; }

for ranks in 1 2 3; do
  run --ranks $ranks || fail "--ranks $ranks ended with $?"
  (($(grep -c "^rank . of $ranks is process" "$out") == ranks)) || fail "$ranks ranks did not start"
  grep -q "micro-batches $ranks" "$out" || fail "--ranks $ranks: not one micro-batch per rank"
  (($(grep -c '^step' "$out") == 3)) || fail "--ranks $ranks: not one line per step"
  [[ ! -s $err ]] || fail "--ranks $ranks: standard error is not empty"
  expect_nothing_left "--ranks $ranks"
done

# A mesh gives the number of ranks.
run --mesh replica=2,shard=2 || fail "--mesh ended with $?"
(($(grep -c "^rank . of 4 is process" "$out") == 4)) || fail "--mesh: 4 ranks did not start"
grep -q "micro-batches 4" "$out" || fail "--mesh: not one micro-batch per rank"
expect_nothing_left "--mesh"

# Virtual ranks: threads of one process, of which the first prints.
run --ranks-in-process 3 || fail "--ranks-in-process 3 ended with $?"
(($(grep -c "^rank . of 3 is process" "$out") == 3)) || fail "3 virtual ranks did not start"
(($(sed -n 's/^rank . of 3 is process \([0-9]*\),.*/\1/p' "$out" | sort -u | wc -l) == 1)) ||
  fail "virtual ranks are not in one process"
grep -q "micro-batches 3" "$out" || fail "--ranks-in-process 3: not one micro-batch per rank"
(($(grep -c '^step' "$out") == 3)) || fail "--ranks-in-process 3: not one line per step"
[[ ! -s $err ]] || fail "--ranks-in-process 3: standard error is not empty"

# Arguments arrive unchanged.
run --ranks 2 --words 'a b' '$HOME "*"' -- || run --ranks 2 --words 'a b' '$HOME "*"'
(($(tr -d '\r' <"$out" | grep -cxF -e '[a b]' -e '[$HOME "*"]') == 4)) || fail "arguments changed"

run --ranks 2 --report "$scratch/report.json" --zero 2 || fail "--report: $?"
grep -q '"zero": 2' "$scratch/report.json" || fail "--report: no configuration in it"
[[ $(ls "$scratch") == $'err\nout\nreport.json' ]] || fail "--report: temporary files are left"

expect() { # CODE TEXT ARG...
  local code=$1 text=$2
  shift 2
  run "$@"
  local got=$?
  [[ $got == "$code" ]] || fail "$*: exit code $got, expected $code"
  grep -qF -- "$text" "$err" || fail "$*: no '$text'"
  (($(wc -l <"$err") <= 25)) || fail "$*: more than 25 lines of error"
  expect_nothing_left "$*"
}
for ranks in 1 3; do
  on=$((ranks - 1))
  expect 1 "something is broken" --ranks $ranks --do fail --on-rank $on
  expect 1 "something is broken" --ranks $ranks --do fail-together --on-rank $on
  expect 1 "error: everything is broken" --ranks $ranks --do fail-everywhere
  (($(grep -c broken "$err") == 1)) || fail "fail-everywhere: not said once"
done
for ranks in "--ranks 3" "--ranks-in-process 3"; do
  expect 1 "error on rank 1: something is broken" $ranks --do fail-together --on-rank 1
done
for action in fail return-error; do
  expect 1 "something is broken" --ranks-in-process 3 --do $action --on-rank 2
  (($(grep -c "rank 2.*something is broken" "$err") == 1 && $(wc -l <"$err") == 1)) ||
    fail "$action on a virtual rank: not said once with the rank"
done
expect 1 "error: everything is broken" --ranks-in-process 3 --do fail-everywhere
(($(grep -c broken "$err") == 1)) || fail "fail-everywhere on virtual ranks: not said once"
expect 2 "what it does on a rank must be inside Job::run" --ranks-in-process 3 --do no-run
expect 1 "rank 2: data loss: something is broken" --ranks 3 --do fail --on-rank 2
head -n 1 "$err" | grep -q "rank 2" || fail "the rank's message is not the first"
expect 3 "rank 1 ended with exit code 3" --ranks 2 --do exit-3 --on-rank 1
expect 137 "rank 1 was ended by signal 9" --ranks 2 --do kill --on-rank 1
expect 134 "rank 0 was ended by signal 6" --ranks 2 --do crash --on-rank 0
expect 1 "rank 1 left the job before its end" --ranks 2 --do leave --on-rank 1
expect 1 "no sign of rank 0 within 2 s" --ranks 2 --do stop --on-rank 0 --timeout 2

# Rank 0 logs at --log-level; the others log warnings and errors only.
logs() { # LEVEL EXPECTED: without the line about the start
  local ranks
  for ranks in --ranks --ranks-in-process; do
    timeout -k 5 30 "$program" $ranks 2 --do warn --log-level "$1" >"$out" 2>"$err" || fail "--log-level $1: $?"
    [[ $(grep -v '^info: 2 ranks' "$err" | sort) == "$2" ]] || fail "$ranks 2 --log-level $1: another log"
  done
}
odd=$'warning: rank 1: something is odd\nwarning: something is odd'
logs debug $'info: all is well\n'"$odd"
logs info $'info: all is well\n'"$odd"
logs warn "$odd"
logs error ""
logs off ""

# One line says at the start what was chosen and why.
starts_with() { # EXPECTED ARG...: a regular expression for the one line
  local expected=$1
  shift
  timeout -k 5 30 "$program" "$@" >"$out" 2>"$err" || fail "$*: $?"
  [[ $(cat "$err") =~ ^info:\ $expected$ ]] || fail "$*: another first line than '$expected'"
}
best='kernels use [a-z0-9_]+(, for bf16 products [a-z0-9_]+)? \(the best that the processor has\)'
one_host='transport: shared memory \(all ranks are on one host\)'
if [[ -z ${ZG_INSTRUCTION_SET:-} ]]; then
  starts_with "1 rank, 1 thread; $best; transport: none \(1 rank\)"
  starts_with "3 ranks, 3 per host, 1 thread each; $best; $one_host" --ranks 3
  starts_with "2 ranks in one process, a thread each; $best; transport: in process \(--ranks-in-process\)" \
    --ranks-in-process 2
  if (($(nproc) < 1000)); then
    warns='warning: --threads 1000: 1 rank on a host has 1000 threads together, but may use [0-9]+ CPUs?; more than '
    starts_with "1 rank, 1000 threads; $best; transport: none \(1 rank\)"$'\n'"$warns[0-9]+ threads? per rank will not be faster" \
      --threads 1000
  fi
fi
ZG_INSTRUCTION_SET=baseline ZG_COMM=messages starts_with \
  "2 ranks, 2 per host, 1 thread each; kernels use baseline \(ZG_INSTRUCTION_SET=baseline\); transport: messages \(ZG_COMM=messages\)" \
  --ranks 2

# Signals to the program that started the ranks.
signal() { # NAME CODE
  : >"$out"
  "$program" --ranks 2 --steps 10000 --step-ms 10 >"$out" 2>"$err" &
  local launcher=$! i
  for ((i = 0; i < 100; ++i)); do
    ! grep -q '^step' "$out" || break
    sleep 0.1
  done
  kill -s "$1" $launcher
  wait $launcher
  local got=$?
  [[ $got == "$2" ]] || fail "SIG$1: exit code $got, expected $2"
  (($(grep -c '^step' "$out") < 10000)) || fail "SIG$1: the job went on"
  expect_nothing_left "SIG$1"
}
signal INT 1
signal TERM 1
signal HUP 1
signal USR1 0 # job_program ends its steps at USR1
grep -q '^  loss ' "$out" || fail "SIGUSR1 did not reach the ranks"
signal KILL 137

# Nobody reads the output.
for ranks in 1 2; do
  timeout -k 5 30 "$program" --ranks $ranks --steps 50 --step-ms 5 --report "$scratch/done" \
    2>"$err" | head -n 1 >"$out"
  [[ ${PIPESTATUS[0]} == 0 && -e $scratch/done ]] || fail "a closed pipe ended the job"
  rm -f "$scratch/done"
  timeout 30 "$program" --ranks $ranks --steps 50 --step-ms 5 --report "$scratch/done" \
    >/dev/full 2>"$err"
  [[ $? == 0 && -e $scratch/done ]] || fail "a full disk ended the job"
  (($(grep -c 'standard output cannot be written' "$err") == 1)) || fail "not one warning"
  rm -f "$scratch/done"
done

# A killed supervisor leaves an mpirun that takes its time to end, and writes into the directory until then.
mkdir "$scratch/bin"
cat >"$scratch/bin/mpirun" <<'END'
#!/bin/bash
trap '' TERM
echo "temporary directory $TMPDIR"
echo $$ >"${BASH_SOURCE[0]}.pid"
for ((i = 0; i < 15; ++i)); do
  mkdir -p "$TMPDIR/session"
  sleep 0.1
done
END
chmod +x "$scratch/bin/mpirun"
: >"$out"
PATH=$scratch/bin:$PATH "$program" --ranks 2 >"$out" 2>"$err" &
launcher=$!
until [[ -s $scratch/bin/mpirun.pid ]] && grep -q '^temporary directory' "$out"; do sleep 0.05; done
kill -KILL $(<"/proc/$launcher/task/$launcher/children")
wait $launcher
[[ $? == 137 ]] || fail "a killed supervisor: not exit code 137"
while kill -0 "$(<"$scratch/bin/mpirun.pid")" 2>/dev/null; do sleep 0.05; done
expect_nothing_left "a killed supervisor"
rm -r "$scratch/bin"

# Under an mpirun of the user's own.
TMPDIR=$(mktemp -d /tmp/o.XXXXXX)
trap 'rm -rf "$scratch" "$TMPDIR"' EXIT
export TMPDIR OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_vader_backing_directory=$TMPDIR OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_rmaps_base_oversubscribe=1
timeout 30 mpirun -n 2 "$program" >"$out" 2>"$err" || fail "mpirun -n 2: $?"
grep -q '^rank 1 of 2' "$out" || fail "mpirun -n 2: not a job of 2"
timeout 30 mpirun -n 1 "$program" >"$out" 2>"$err" || fail "mpirun -n 1: $?"
(($(timeout 30 mpirun -n 2 "$program" --help | grep -c -- --zero) == 1)) || fail "--help twice"

reject() { # TEXT ARG...: of mpirun, before any rank begins
  local text=$1
  shift
  EXPECT_ERROR_FIRST=1 "$expect_error" mpirun 2 "$text" -- "$@" || failed=1
}
reject "--seed: rank 1 has '2', rank 0 has '1'" -n 1 "$program" --seed 1 : -n 1 "$program" --seed 2
reject "--zero: rank 2 has '3', rank 0 has '0'" -n 2 "$program" : -n 1 "$program" --zero 3
reject "--mesh: rank 1 has 'replica=2', rank 0 has 'data=2'" -n 1 "$program" --mesh data=2 : -n 1 "$program" --mesh replica=2
reject "--mesh: rank 1 has 'tensor=2', rank 0 has 'shard=2'" -n 1 "$program" --mesh shard=2 : -n 1 "$program" --mesh tensor=2
reject "--mesh: rank 2 has 'shard=3', rank 0 has ''" -n 2 "$program" : -n 1 "$program" --mesh shard=3
reject "error on rank 1: --mesh: got replica=2,shard=2, which are 4 ranks, but the job has 2" -n 1 "$program" --mesh data=2 : \
  -n 1 "$program" --mesh replica=2,shard=2
reject "error on rank 1: unknown flag --sed" -n 1 "$program" : -n 1 "$program" --sed 1
reject "error: unknown flag --sed" -n 2 "$program" --sed 1
reject "--help on some ranks" -n 1 "$program" : -n 1 "$program" --help
reject "--ranks: got 3, but mpirun started 2" -n 2 "$program" --ranks 3
reject "--ranks: got 3, but mpirun started 1" -n 1 "$program" --ranks 3
reject "--ranks-in-process: got 3, but there are 2 processes" -n 2 "$program" --ranks-in-process 3
reject "--micro-batches: got 3, expected a multiple of the 2 ranks" -n 2 "$program" \
  --micro-batches 3
reject "error on rank 0: --report: /no/such/r.json" -n 2 "$program" --report /no/such/r.json
exit $failed
