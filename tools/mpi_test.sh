#!/usr/bin/env bash
# mpi_test.sh RANKS PROGRAM [ARG...]: runs PROGRAM under mpirun with RANKS ranks on this machine.
# Used by the mpi_test macro; works outside Bazel too.
set -euo pipefail

if (($# < 2)); then
  echo "usage: $0 RANKS PROGRAM [ARG...]" >&2
  exit 2
fi
ranks=$1
program=$2
shift 2
[[ $program == */* ]] || program=./$program

# Open MPI names its session directory and shared-memory files after the PID of mpirun. In Bazel's
# sandbox that PID is the same in every test, so concurrent tests would destroy each other's files;
# each test gets a private directory. The path is short because a socket's name must fit in 108 bytes.
private_dir=$(mktemp -d /tmp/o.XXXXXX)
trap 'rm -rf "$private_dir"' EXIT
export TMPDIR=$private_dir

export ZG_EXPECTED_RANKS=$ranks
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# --config=asan: Open MPI leaks thousands of blocks, from modules that it has unloaded by the time the
# leaks are reported, so that no suppression can name them. The other tests do look for leaks.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

# mpirun gives up before Bazel would, so that a hang is reported with the output of all ranks.
limit_s=$((${TEST_TIMEOUT:-60} - 10))
timeout -k 5 $((limit_s + 5)) mpirun -n "$ranks" --oversubscribe --bind-to none --tag-output \
  --timeout "$limit_s" \
  --mca mpi_yield_when_idle 1 \
  --mca btl_vader_backing_directory "$private_dir" \
  --mca osc_sm_backing_directory "$private_dir" \
  "$program" "$@"
