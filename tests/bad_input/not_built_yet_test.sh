#!/usr/bin/env bash
# not_built_yet_test.sh EXPECT_ERROR PROGRAM: a flag whose feature this build lacks is an error,
# never ignored.
set -uo pipefail
expect_error=$1
program=$2
[[ $program == */* ]] || program=./$program

failed=0
reject() {
  local text=$1
  shift
  "$expect_error" "$program" 2 "$text" -- "$@" || failed=1
}

# Hides all GPUs, whatever this build and this machine have.
CUDA_VISIBLE_DEVICES='' "$expect_error" "$program" 1 "or use --device cpu" -- --device cuda || failed=1
reject "--cuda-graph: is without effect" --cuda-graph
exit $failed
