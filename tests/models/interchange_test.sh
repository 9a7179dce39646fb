#!/usr/bin/env bash
# interchange_test.sh GPT RECIPE CLASSIFIER CHECKPOINT: models are converted to other programs' names
# and back, as a user does it: train at one stage on several ranks, convert, start a new run from the result.
set -euo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
gpt=./$1 recipe=./$2 classifier=./$3 checkpoint=./$4
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
seq 20000 >"$directory/text.txt"

run_gpt() { # NAME ARG...
  local name=$1
  shift
  "$gpt" --layers 2 --heads 2 --embd 32 --context 32 --batch 2 --micro-batches 6 --sample-tokens 0 \
    --eval-windows 8 --data "$directory/text.txt" --report "$directory/$name.json" "$@" \
    >"$directory/$name.out"
}

# There and back through Hugging Face's names, in a directory without anything of ours.
run_gpt trained --ranks 3 --zero 3 --steps 2 --save "$directory/gpt"
"$checkpoint" convert --to gpt2 "$directory/gpt" "$directory/theirs" >/dev/null
test "$(ls "$directory/theirs")" = $'config.json\nmodel.safetensors'
"$checkpoint" convert --from gpt2 "$directory/theirs" "$directory/back" >"$directory/said"
grep -e "--layers 2 --heads 2 --embd 32 --context 32 --vocab 256" "$directory/said" >/dev/null
"$checkpoint" export "$directory/gpt" "$directory/exported" >/dev/null
"$checkpoint" export "$directory/gpt" "$directory/half" --dtype bf16 >/dev/null
run_gpt from_back --steps 2 --init "$directory/back"
run_gpt from_checkpoint --steps 2 --init "$directory/gpt"
run_gpt from_exported --steps 2 --init "$directory/exported" --ranks 2 --zero 2
run_gpt from_half --steps 2 --init "$directory/half"

# A vocabulary that the text does not fill.
"$checkpoint" convert --from gpt2 "$directory/theirs" "$directory/padded" --vocab 304 >/dev/null
run_gpt padded --steps 1 --init "$directory/padded" --vocab 304

"$recipe" --layers 3 --width 20 --steps 2 --ranks 2 --zero 3 --save "$directory/recipe" >/dev/null
"$checkpoint" convert --to sequential "$directory/recipe" "$directory/recipe_theirs" >/dev/null
"$checkpoint" convert --from sequential "$directory/recipe_theirs" "$directory/recipe_back" >/dev/null
"$checkpoint" convert --to sequential "$directory/recipe_back" "$directory/recipe_again" >/dev/null
cmp "$directory/recipe_theirs" "$directory/recipe_again"
"$recipe" --layers 3 --width 20 --steps 1 --init "$directory/recipe_back" >/dev/null

"$classifier" --steps 2 --batch 4 --save "$directory/classifier" >/dev/null
"$checkpoint" convert --to classifier "$directory/classifier" "$directory/classifier_theirs" >/dev/null
"$checkpoint" convert --from classifier "$directory/classifier_theirs" "$directory/classifier_back" >/dev/null
"$classifier" --steps 1 --batch 4 --init "$directory/classifier_back" >/dev/null

python3 - "$directory" <<'PYTHON'
import json
import pathlib
import struct
import sys

directory = pathlib.Path(sys.argv[1])
losses = {path.stem: [step["loss"] for step in json.loads(path.read_text())["steps"]]
          for path in directory.glob("*.json")}
assert losses["from_back"] == losses["from_exported"] == losses["from_checkpoint"], losses
assert losses["from_back"][0] < losses["trained"][0], losses
assert losses["from_half"][0] != losses["from_back"][0], losses
assert abs(losses["from_half"][0] - losses["from_back"][0]) < 0.01, losses
assert losses["padded"][0] > losses["from_back"][0], losses  # 48 tokens more to choose from


def names(file):
    raw = (directory / file).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    return sorted(set(json.loads(raw[8 : 8 + length])) - {"__metadata__"})


assert names("recipe_theirs") == [f"{i}.{kind}" for i in range(3) for kind in ("bias", "weight")]
assert names("classifier_theirs") == ["0.bias", "0.weight", "2.bias", "2.weight"]
assert "h.1.attn.c_attn.weight" in names("theirs/model.safetensors")
PYTHON
