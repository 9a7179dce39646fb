#!/usr/bin/env bash
# checkpoint_tool_test.sh EXPECT_ERROR CHECKPOINT CLASSIFIER: the program checkpoint: exit codes,
# and what it says on which output.
set -uo pipefail
expect_error=./$1 checkpoint=./$2 classifier=./$3
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT
failed=0
reject() { # CODE TEXT ARG...
  local code=$1 text=$2
  shift 2
  "$expect_error" "$checkpoint" "$code" "$text" -- "$@" || failed=1
}
expect() { # TEXT ARG...
  local text=$1
  shift
  "$checkpoint" "$@" | grep -F -- "$text" >/dev/null && ((PIPESTATUS[0] == 0)) && return
  echo "FAILED: checkpoint $*: no '$text'" >&2
  failed=1
}

"$classifier" --steps 2 --batch 4 --save "$directory" --save-every 1 >/dev/null || exit 1
expect "model classifier, step 2, 2 updates" inspect "$directory"
expect ": whole" verify "$directory/step-00000001"
expect "the same, and so is all else" diff "$directory" "$directory/step-00000002"
"$checkpoint" diff "$directory/step-00000001" "$directory" >"$directory/out"
(($? == 1)) && grep -F "step: 1 | 2" "$directory/out" >/dev/null || {
  echo "FAILED: diff of two steps" >&2
  failed=1
}

reject 2 "subcommand"
reject 2 "DIR" verify
reject 1 "there is no checkpoint" verify /
reject 1 "error: /no/such: No such file or directory" diff "$directory" /no/such
truncate -s -1 "$directory"/step-00000001/model-00001-of-00001.safetensors
reject 1 "model-00001-of-00001.safetensors" verify "$directory/step-00000001"
exit $failed
