#!/usr/bin/env bash
# checkpoint_tool_test.sh EXPECT_ERROR CHECKPOINT CLASSIFIER: the program checkpoint: exit codes,
# and what it says on which output.
set -uo pipefail
expect_error=./$1 tool=./$2 classifier=./$3
source "${BASH_SOURCE[0]%/*}/tool_checks.sh"

"$classifier" --steps 2 --batch 4 --save "$directory" --save-every 1 >/dev/null || exit 1
expect "model classifier, step 2, 2 updates" inspect "$directory"
expect ": whole" verify "$directory/step-00000001"
expect "the same, and so is all else" diff "$directory" "$directory/step-00000002"
"$tool" diff "$directory/step-00000001" "$directory" >"$directory/out"
(($? == 1)) && grep -F "step: 1 | 2" "$directory/out" >/dev/null || fail "diff of two steps"

expect "4 tensors of step 2" export "$directory" "$directory/exported" --dtype f16
expect "4 tensors, 34186 parameters in F32" convert --to classifier "$directory" "$directory/theirs"
reject 1 "exported: is there already; give --force" export "$directory" "$directory/exported"
expect "exported: 4 tensors of step 2" export "$directory" "$directory/exported" --optimizer --force
reject 1 "is read, and cannot be replaced" export "$directory" "$directory/step-00000002/model-00001-of-00001.safetensors" --force
expect ": whole" verify "$directory/step-00000002"
reject 2 "--dtype: f64" export "$directory" "$directory/other" --dtype f64
reject 2 "--from,--to" convert "$directory" "$directory/other"
reject 2 "--from: llama" convert --from llama "$directory" "$directory/other"
reject 2 "--vocab" convert --from gpt2 "$directory" "$directory/other" --vocab 0
reject 1 "h.0.attn.c_attn.weight: is missing" convert --from gpt2 "$directory/theirs" "$directory/other"
reject 1 "is not expected" convert --to gpt2 "$directory" "$directory/other"
# No room for the file: an error, and no part of the file is left.
(
  ulimit -f 1
  reject 1 "File too large" export "$directory" "$directory/full"
  exit $failed
) || failed=1
[[ -z $(ls "$directory" | grep full) ]] || fail "export without room has left something"
reject 2 "subcommand"
reject 2 "DIR" verify
reject 1 "there is no checkpoint" verify /
reject 1 "error: /no/such: No such file or directory" diff "$directory" /no/such
truncate -s -1 "$directory"/step-00000001/model-00001-of-00001.safetensors
reject 1 "model-00001-of-00001.safetensors" verify "$directory/step-00000001"
exit $failed
