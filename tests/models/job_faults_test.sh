#!/usr/bin/env bash
# job_faults_test.sh RECIPE CLASSIFIER EXPECT_ERROR: training jobs in which a rank stops, or runs
# another program: each job ends soon, with an error that says which rank and where.
set -uo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
recipe=$PWD/$1 classifier=$PWD/$2 expect_error=./$3
[[ $1 != /* ]] || recipe=$1
[[ $2 != /* ]] || classifier=$2
[[ $3 != /* ]] || expect_error=$3
scratch=$(mktemp -d /tmp/o.XXXXXX) || exit 1
job=
trap 'kill $job 2>/dev/null; rm -rf "$scratch"' EXIT
out=$scratch/out
err=$scratch/err
failed=0
fail() {
  echo "FAILED: $*" >&2
  tail -n 5 "$out" >&2
  cat "$err" >&2
  failed=1
}

ranks() { # PID RANK of our job, one a line
  local directory rank
  for directory in /proc/[0-9]*; do
    grep -qsF -- "$scratch/report.json" "$directory/cmdline" || continue
    rank=$({ tr '\0' '\n' <"$directory/environ"; } 2>/dev/null | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')
    [[ -z $rank ]] || echo "${directory#/proc/} $rank"
  done
}

# A rank that is stopped: after the deadline every other one says what it waits for, and for whom. It
# may be stopped in the middle of what ranks say to each other between steps.
collective="(reduce_scatter|all_gather|all_reduce)"
for transport in shared messages; do
  for stopped in 0 2; do
    what="$transport, rank $stopped of 3 is stopped"
    : >"$out"
    ZG_COMM=$transport "$recipe" --ranks 3 --layers 4 --width 60 --zero 2 --steps 100000000 --timeout 2 \
      --report "$scratch/report.json" >"$out" 2>"$err" &
    job=$!
    for ((i = 0; i < 300 && $(grep -c '^step' "$out") < 5; ++i)); do sleep 0.1; done
    pids=$(ranks)
    kill -STOP "$(sed -n "s/ $stopped\$//p" <<<"$pids")" || fail "$what: it is not there: $pids"
    start=$SECONDS
    code=0
    wait $job || code=$?
    ((code == 1)) || fail "$what: exit code $code, expected 1"
    ((SECONDS - start <= 10)) || fail "$what: the job ended only after $((SECONDS - start)) s"
    nobody="no sign of rank $stopped within 2 s"
    grep -Eq -e "^rank [^$stopped]: deadline exceeded: step [0-9]+, $collective.*: $collective '.*' .*on rank [^$stopped]: $nobody" \
      -e "^rank [^$stopped]: deadline exceeded: (step [0-9]+: exchange_word '.*' .*on rank [^$stopped]|exchange '.*' .*on rank [^$stopped]|signals): $nobody" "$err" || fail "$what: no error that names step, collective and rank"
    for ((i = 0; i < 50; ++i)); do
      [[ -n $(ranks) ]] || break
      sleep 0.1
    done
    [[ -z $(ranks) ]] || fail "$what: a process is left: $(ranks)"
  done
done

# Ranks that differ are told so before the first step.
export TMPDIR=$scratch OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_vader_backing_directory=$scratch OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_rmaps_base_oversubscribe=1
reject() { # TEXT ARG...: of mpirun
  local text=$1
  shift
  "$expect_error" mpirun 2 "$text" -- "$@" || failed=1
}
for flag in "layers 3 4" "zero 1 2" "bucket-mb 16 1" "dtype f32 bf16" "seed 1 2" "batch 4 5" "steps 3 4" "lr 0.1 0.2"; do
  read -r name first second <<<"$flag"
  reject "--$name: rank 1 has '$second', rank 0 has '$first'" \
    -n 1 "$recipe" --width 20 --$name "$first" : -n 1 "$recipe" --width 20 --$name "$second"
done
reject "rank 1 is another program than rank 0" -n 1 "$recipe" : -n 1 "$classifier"
exit $failed
