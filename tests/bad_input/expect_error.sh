#!/usr/bin/env bash
# expect_error.sh PROGRAM EXPECTED_CODE EXPECTED_SUBSTRING -- ARG...
#
# Runs PROGRAM ARG... and fails unless it ends by itself within EXPECT_ERROR_SECONDS (20), with the
# exit code, with the text on standard error, and with at most 25 lines there: an error that people
# can read. With EXPECT_ERROR_FIRST=1 nothing may stand on standard output: the error comes before
# the run shows anything. EXPECTED_CODE may be "nonzero". PROGRAM may be `env` or `mpirun`, then ARG... names the
# program.
set -uo pipefail

if (($# < 4)) || [[ $4 != -- ]]; then
  echo "usage: $0 PROGRAM EXPECTED_CODE EXPECTED_SUBSTRING -- ARG..." >&2
  exit 2
fi
program=$1
expected_code=$2
expected_text=$3
shift 4

max_lines=25
limit_s=${EXPECT_ERROR_SECONDS:-20}
errors=$(mktemp) && output=$(mktemp) || exit 2
trap 'rm -f "$errors" "$output"' EXIT

timeout -k 5 "$limit_s" "$program" "$@" >"$output" 2>"$errors" </dev/null
code=$?

problems=()
if ((code == 124 || code == 137 && expected_code != 137)); then
  problems+=("it did not end within $limit_s s")
elif [[ $expected_code == nonzero ]]; then
  ((code != 0)) || problems+=("exit code 0, expected another")
elif [[ $code != "$expected_code" ]]; then
  problems+=("exit code $code, expected $expected_code")
fi
grep -qF -- "$expected_text" "$errors" || problems+=("no '$expected_text' on standard error")
[[ -z ${EXPECT_ERROR_FIRST:-} || ! -s $output ]] || problems+=("there is something on standard output")
lines=$(wc -l <"$errors")
((lines <= max_lines)) || problems+=("$lines lines on standard error, expected at most $max_lines")
for internal in 'terminate called' 'Segmentation fault' 'AddressSanitizer' 'runtime error:'; do
  ! grep -qF "$internal" "$errors" || problems+=("'$internal' on standard error")
done

((${#problems[@]})) || exit 0
{
  echo "FAILED: $program $*"
  printf '  %s\n' "${problems[@]}"
  echo "--- standard error (code $code)"
  head -n 60 "$errors"
  echo "--- standard output"
  head -n 20 "$output"
  echo "---"
} >&2
exit 1
