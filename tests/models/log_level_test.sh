#!/usr/bin/env bash
# log_level_test.sh CLASSIFIER: what --log-level shows of a run that saves, resumes and meets a full disk.
set -uo pipefail
# What Open MPI leaves behind is not ours to free.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
classifier=./$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failed=0
fail() {
  echo "FAILED: $*" >&2
  cat "$directory/err" >&2
  failed=1
}
run() { # LEVEL ARG...
  local level=$1
  shift
  timeout -k 5 60 "$classifier" --ranks-in-process 2 --zero 2 --log-level "$level" "$@" >/dev/null 2>"$directory/err"
}
count() { grep -cE -- "$1" "$directory/err"; }

run debug --steps 1 --save "$directory/saved" || fail "a run at debug ended with $?"
(($(count '^debug: pass shard-gradients: [0-9.]+ ms$') == 1)) || fail "the pass that shards gradients is not there once"
(($(count '^debug: pass [a-z0-9-]+: [0-9.]+ ms, no change$') > 0)) || fail "no pass without change"
(($(count '^debug: plan of [a-z]+: an arena of [0-9.]+ [KM]?B for [0-9]+ buffers, at most parameters ') == 1)) ||
  fail "the plan is not there once"
(($(count '^info: 2 ranks') == 1)) || fail "no line about the start"
run debug --steps 2 --resume "$directory/saved" || fail "a run that resumes ended with $?"
(($(count '^debug: --resume: .*/step-00000001/model-[0-9of-]+\.safetensors: [0-9]+ tensors, ') > 0)) || fail "no file of parameters"

run info --steps 2 --resume "$directory/saved" || fail "a run at info ended with $?"
(($(count '^debug') == 0 && $(count '^info') == 1)) || fail "another log at info"
run warn --steps 2 --resume "$directory/saved" || fail "a run at warn ended with $?"
[[ ! -s $directory/err ]] || fail "a log at warn"

# A trace for which there is no room: a warning at once, and an error at the end.
for level in warn error off; do
  (
    ulimit -f 4
    run $level --steps 3 --trace "$directory/trace" --trace-steps 1
  )
  code=$?
  ((code == 1 && $(count '^error on rank 0: --trace: ') == 1)) || fail "at $level a full disk ended with $code"
  expected=$([[ $level == warn ]] && echo 1 || echo 0)
  (($(count '^warning: --trace: .*File too large') == expected)) || fail "the warning at $level"
done
exit $failed
