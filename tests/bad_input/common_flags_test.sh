#!/usr/bin/env bash
# common_flags_test.sh EXPECT_ERROR PROGRAM: what every program with a Job must refuse before it
# does any work.
set -uo pipefail
expect_error=$1
program=$2
[[ $program == */* ]] || program=./$program

failed=0
reject() { # TEXT ARG...: exit code 2 and TEXT on standard error
  local text=$1
  shift
  "$expect_error" "$program" 2 "$text" -- "$@" || failed=1
}

reject "unknown flag --stpes; did you mean --steps?" --stpes 3
reject "unknown flag --micro_batches; did you mean --micro-batches?" --micro_batches=3
reject "unknown flag --bananas" --bananas
reject "unknown flag -x" -x
reject "unexpected argument 'train'" train
reject "hint: " --bananas

for value in abc 4 -1 1.0 0x1 "" " 1" 99999999999999999999; do
  reject "--zero: got" --zero "$value"
done
reject "--zero: got '4', expected a whole number from 0 to 3" --zero 4
for value in 2,3 blocks.*=4 2,blocks.* blocks.*=3,2 2,=3 2, ,2 blocks..0=1; do
  reject "--zero: " --zero "$value"
done
reject "--zero: got '2,blocks.*=4', expected a whole number from 0 to 3, or stages by name" --zero '2,blocks.*=4'
reject "--zero: got no value, expected one after '='" --zero=
reject "--zero: got it 2 times" --zero 1 --zero 1
reject "--steps: got no value, expected N before --zero" --steps --zero 2
reject "--seed" --zero 1 --seed

for flag in ranks ranks-in-process steps batch; do
  reject "--$flag: got '0', expected a whole number" --$flag 0
  reject "--$flag: got '-1', expected a whole number" --$flag -1
  reject "--$flag: got '1e3', expected a whole number" --$flag 1e3
done
for flag in micro-batches seed shard-min-elements; do
  reject "--$flag: got '-1', expected a whole number >= 0" --$flag -1
done
for value in -1 nan inf; do
  reject "--clip-norm: got '$value', expected a number >= 0" --clip-norm $value
done
for value in -0.1 1.1 nan; do
  reject "--final-lr-factor: got '$value', expected a number from 0 to 1" --final-lr-factor $value
done
reject "--log-level: got 'loud', expected trace, debug, info, warn, error or off" --log-level loud
reject "--lr-schedule: got 'step', expected constant, linear or cosine" --lr-schedule step
reject "--warmup-steps: got '-1', expected a whole number >= 0" --warmup-steps -1
reject "--warmup-steps: got 6, expected at most the 5 --steps" --steps 5 --warmup-steps 6
reject "--final-lr-factor: got 0.5, but --lr-schedule constant keeps the learning rate" \
  --lr-schedule constant --final-lr-factor 0.5
for flag in bucket-mb timeout; do
  for value in 0 -1 nan inf 1e999 1,5; do
    reject "--$flag: got '$value', expected a number > 0" --$flag "$value"
  done
done
reject "--ranks: got '1025', expected a whole number from 1 to 1024" --ranks 1025
reject "--micro-batches: got 3, expected a multiple of the 2 ranks" --ranks 2 --micro-batches 3
reject "--ranks-in-process: got 4, but there are 2 processes" --ranks 2 --ranks-in-process 4
reject "--micro-batches: got 3, expected a multiple of the 2 ranks" --ranks-in-process 2 \
  --micro-batches 3

reject "--device: got 'tpu', expected cpu or cuda" --device tpu
reject "--reduce-every: got 'epoch', expected micro-batch or step" --reduce-every epoch
reject "--on-non-finite: got 'warn', expected stop, skip or ignore" --on-non-finite warn
reject "--dtype: got 'f64', expected f32, bf16 or f16" --dtype f64

reject "--init: /no/such/file: " --init /no/such/file
reject "--resume: /no/such/directory: " --resume /no/such/directory
reject "--resume: /dev/null: is not a directory" --resume /dev/null
reject "--init: got /dev/null, but --resume / brings the parameters" --init /dev/null --resume /
for flag in save-every keep; do
  reject "--$flag: got '-1', expected a whole number >= 0" --$flag -1
  reject "--$flag: is without effect; give --save DIR as well" --$flag 2
done
reject "--report: /no/such/directory/r.json: directory /no/such/directory does not exist" \
  --report /no/such/directory/r.json
reject "--report: /: is a directory" --report /
reject "--trace: /no/such/directory/t.json: directory /no/such/directory does not exist" \
  --trace /no/such/directory/t.json
reject "--trace-steps: got '0', expected a whole number from 1 to 1000" --trace-steps 0 --trace t
reject "--trace-steps: is without effect; give --trace FILE as well" --trace-steps 2
reject "--metrics-histograms: is without effect; give --metrics DIR as well" --metrics-histograms 2
reject "--print-ir: /proc/ir: " --print-ir /proc/ir
reject "--metrics: /proc/m: " --metrics /proc/m

reject_environment() { # TEXT NAME=VALUE
  "$expect_error" env 2 "$1" -- "$2" "$program" || failed=1
}
reject_environment "environment variable ZG_TYPO is not known" ZG_TYPO=1
reject_environment "environment variable ZG_COLLECTIVE_TIMEOUT_S is 'soon'" \
  ZG_COLLECTIVE_TIMEOUT_S=soon

# An mpirun that does not exist, or that of another MPI.
"$expect_error" env 1 "there is no mpirun on PATH" -- PATH=/no/such/directory "$program" \
  --ranks 2 || failed=1
foreign=$(mktemp -d) || exit 1
trap 'rm -rf "$foreign"' EXIT
printf '#!/bin/sh\nfor last; do :; done\nexec "$ZG_PROGRAM" --ranks 2\n' |
  sed "s|\"\$ZG_PROGRAM\"|'$PWD/$program'|" >"$foreign/mpirun"
chmod +x "$foreign/mpirun"
"$expect_error" env 1 "not as a rank of an MPI job" -- PATH="$foreign:$PATH" "$program" \
  --ranks 2 || failed=1

if ! help=$("$program" --help) || [[ $help != *--zero* || $help != *--report* ]]; then
  echo "FAILED: $program --help" >&2
  failed=1
fi
if (($(wc -L <<<"$help") > 120)); then
  echo "FAILED: --help has lines of more than 120 characters" >&2
  failed=1
fi
exit $failed
