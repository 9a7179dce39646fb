#!/usr/bin/env bash
# convert_tool_test.sh EXPECT_ERROR CONVERT BERT: the program convert: a model of transformers through
# a checkpoint of ours and back, sizes by name, exit codes, and what it says on which output.
set -uo pipefail
expect_error=./$1 tool=./$2 bert=./$3
model=tests/reference/models/bert
source "${BASH_SOURCE[0]%/*}/tool_checks.sh"

# Tokens below 60, in nanoGPT's format; the learning rate is 0.
python3 -c 'import sys; sys.stdout.buffer.write(bytes(b for i in range(1000) for b in (i * 7 % 60, 0)))' >"$directory/tokens.bin"
"$bert" --from $model --data "$directory/tokens.bin" --steps 1 --batch 2 --lr 0 --save "$directory/run" >/dev/null ||
  fail "training a model of transformers"
expect "back: bert, 42 tensors in model.safetensors" --to "$directory/back" "$directory/run" --like $model
cmp "$directory/back/model.safetensors" $model/model.safetensors || fail "other bytes behind a checkpoint"
cmp "$directory/back/config.json" $model/config.json || fail "another config.json"

# A model that was trained here from the start.
"$bert" --preset tiny --data "$directory/tokens.bin" --context 16 --steps 1 --batch 2 --save "$directory/tiny" >/dev/null ||
  fail "training a model of ours"
expect "theirs: bert, 42 tensors" --to "$directory/theirs" "$directory/tiny" --preset bert/tiny
expect "again: bert, 42 tensors" --from "$directory/theirs" "$directory/again"
cmp "$directory/again" "$directory/theirs/model.safetensors" || fail "other bytes of a model of ours"
expect "again: bert, 42 tensors" --from "$directory/theirs" "$directory/again" --dtype bf16 --force
"$bert" --preset tiny --data "$directory/tokens.bin" --context 16 --steps 1 --batch 2 --init "$directory/again" >/dev/null ||
  fail "training on what was converted"

reject 1 "again: is there already; give --force" --from $model "$directory/again"
reject 1 "config.json is read, and cannot be replaced" --from "$directory/theirs" "$directory/theirs/config.json" --force
reject 1 "is read, and cannot be replaced" --from "$directory/theirs" "$directory/theirs/model.safetensors" --force
reject 1 "config.json" --from "$directory" "$directory/x"
reject 1 "--to: got neither of --like and --preset" --to "$directory/x" "$directory/run"
reject 1 "got the shape [61,32], expected [257,128]" --to "$directory/x" "$directory/run" --preset bert/tiny
reject 2 "--dtype" --from $model "$directory/x" --dtype f64
reject 2 "--from,--to" $model
reject 2 "PATH" --from $model
reject 2 "--like" --from $model "$directory/x" --like $model
truncate -s -1 "$directory"/run/step-00000001/model-00001-of-00001.safetensors
reject 1 "model-00001-of-00001.safetensors" --to "$directory/x" "$directory/run" --like $model
exit $failed
