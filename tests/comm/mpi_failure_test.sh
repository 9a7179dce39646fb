#!/usr/bin/env bash
# mpi_failure_test.sh MPI_TEST_SH FAILING_JOB: a rank that fails, does not come or calls something else
# ends the whole job, soon and with an error that says why, over both transports.
set -euo pipefail

mpi_test_sh=$1
failing_job=$2
output=$(mktemp "${TEST_TMPDIR:-/tmp}/mpi_failure_test.XXXXXX")
trap 'rm -f "$output"' EXIT

fail() {
  echo "FAILED: $*; the output was:" >&2
  cat "$output" >&2
  exit 1
}

# expect_job WHAT EXIT_CODE TEXT...
expect_job() {
  local what=$1 expected_code=$2 code=0 start=$SECONDS
  shift 2
  "$mpi_test_sh" 3 "$failing_job" "$what" >"$output" 2>&1 || code=$?
  [[ $expected_code == any ]] || ((code == expected_code)) ||
    fail "$ZG_COMM, $what: exit code $code, expected $expected_code"
  [[ $what == nothing ]] || ((code != 0)) || fail "$ZG_COMM, $what: the job succeeded"
  ((SECONDS - start < 20)) || fail "$ZG_COMM, $what: took $((SECONDS - start)) s"
  for text in "$@"; do
    grep -qF -- "$text" "$output" || fail "$ZG_COMM, $what: no '$text'"
  done
  echo "$ZG_COMM, $what: as expected"
}

for transport in shared messages; do
  export ZG_COMM=$transport
  expect_job nothing 0 "rank 0 is done" "rank 1 is done" "rank 2 is done"
  expect_job error 1 "rank 2: data loss: train.bin: truncated at byte 1000"
  expect_job cause 1 "rank 2: data loss: train.bin: truncated at byte 2000"
  expect_job other 1 "the ranks disagree" "all_gather 'step 2 weights'" "all_reduce 'step 2'"
  expect_job crash any
  ZG_COLLECTIVE_TIMEOUT_S=2 \
    expect_job late 1 "deadline exceeded: all_reduce 'step 2'" "no sign of rank 2 within 2 s"
done
