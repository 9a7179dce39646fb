#!/usr/bin/env bash
# resume_test.sh RECIPE CLASSIFIER GPT EXPECT_ERROR: programs that stop and go on as a user starts
# them, under mpirun: at another stage, on another number of ranks, with another bucket size. The
# bits must be those of the run that did not stop.
set -euo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
recipe=./$1 classifier=./$2 gpt=./$3 expect_error=./$4
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

gpt_flags=(--layers 2 --heads 2 --embd 32 --context 32 --batch 2 --micro-batches 12
  --sample-tokens 0 --eval-windows 8 --dropout 0.1)
run_gpt() { # NAME ARG...
  local name=$1
  shift
  "$gpt" "${gpt_flags[@]}" --report "$directory/$name.json" "$@" >"$directory/$name.out"
}

# gpt's own schedule, a cosine, continues exactly. Saved every second step, one step lost.
run_gpt whole --steps 6
run_gpt saved_2 --steps 6 --ranks 2 --zero 2 --bucket-mb 0.02 --save "$directory/gpt" --save-every 2 --keep 2
test "$(ls "$directory/gpt")" = $'latest\nstep-00000004\nstep-00000006'
run_gpt resumed_3 --steps 6 --ranks 3 --zero 3 --bucket-mb 0.01 --resume "$directory/gpt/step-00000004"
grep "resumed after step 4$" "$directory/resumed_3.out" >/dev/null
run_gpt resumed_1 --steps 6 --resume "$directory/gpt/step-00000004"
ZG_COMM=messages run_gpt resumed_messages --steps 6 --ranks 4 --zero 1 --resume "$directory/gpt/step-00000004"
run_gpt resumed_done --steps 6 --ranks 2 --zero 3 --resume "$directory/gpt" # nothing left to do
grep "resumed after step 6, with all steps done" "$directory/resumed_done.out" >/dev/null
grep "no step was taken" "$directory/resumed_done.out" >/dev/null

for dtype in f32 bf16 f16; do
  run_recipe() { # NAME ARG...
    local name=$1_$dtype
    shift
    "$recipe" --layers 4 --width 100 --micro-batches 6 --dtype "$dtype" --report "$directory/$name.json" "$@" >/dev/null
  }
  run_recipe recipe_whole --steps 5
  run_recipe recipe_first --steps 3 --ranks 3 --zero 1 --save "$directory/recipe_$dtype"
  run_recipe recipe_then --steps 5 --ranks 2 --zero 3 --resume "$directory/recipe_$dtype"
done

"$classifier" --steps 8 --micro-batches 2 --report "$directory/classifier_whole.json" >/dev/null
"$classifier" --steps 4 --ranks-in-process 2 --zero 3 --save "$directory/classifier" >/dev/null
"$classifier" --steps 8 --ranks 2 --zero 2 --resume "$directory/classifier" \
  --report "$directory/classifier_then.json" >/dev/null

python3 - "$directory" <<'PYTHON'
import json
import pathlib
import sys

reports = {path.stem: json.loads(path.read_text()) for path in pathlib.Path(sys.argv[1]).glob("*.json")}


def check(whole, resumed, first_step):
    steps = {step["step"]: (step["loss"], step["lr"]) for step in reports[whole]["steps"]}
    found = {step["step"]: (step["loss"], step["lr"]) for step in reports[resumed]["steps"]}
    assert found == {step: value for step, value in steps.items() if step >= first_step}, resumed
    assert reports[whole]["final"] == reports[resumed]["final"], resumed


check("whole", "saved_2", 1)
for name in ["resumed_3", "resumed_1", "resumed_messages"]:
    check("whole", name, 5)
check("whole", "resumed_done", 7)
for dtype in ["f32", "bf16", "f16"]:
    check(f"recipe_whole_{dtype}", f"recipe_then_{dtype}", 4)
check("classifier_whole", "classifier_then", 5)
PYTHON

failed=0
export EXPECT_ERROR_FIRST=1  # before the configuration
reject() { # CODE TEXT ARG...
  local code=$1 text=$2
  shift 2
  "$expect_error" "$gpt" "$code" "$text" -- "${gpt_flags[@]}" "$@" || failed=1
}
smaller_flags=("${gpt_flags[@]}")
smaller_flags[1]=1 # --layers
other_heads_flags=("${gpt_flags[@]}")
other_heads_flags[3]=4 # --heads
at_step_4=(--resume "$directory/gpt/step-00000004")
for ranks in 1 2; do
  reject 2 "seed: got \"7\", expected \"1\"" --ranks $ranks --steps 6 --seed 7 "${at_step_4[@]}"
  reject 2 "steps: got \"9\", expected \"6\"" --ranks $ranks --steps 9 "${at_step_4[@]}"
  "$expect_error" "$gpt" 2 "'blocks.1.attention.qkv.bias' is not a parameter or state of the model" -- \
    "${smaller_flags[@]}" --ranks $ranks --steps 6 "${at_step_4[@]}" || failed=1
  "$expect_error" "$gpt" 2 "heads: got \"4\", expected \"2\"" -- "${other_heads_flags[@]}" \
    --ranks $ranks --steps 6 "${at_step_4[@]}" || failed=1
  reject 1 "there is no checkpoint" --ranks $ranks --steps 6 --resume "$directory"
  reject 1 "--save: " --ranks $ranks --steps 6 --save /proc/none
done
reject 2 "--resume: /no/such: " --resume /no/such
reject 2 "--keep: is without effect; give --save DIR as well" --keep 2
reject 2 "--init: got" --init "$directory/gpt/step-00000004/model-00001-of-00001.safetensors" "${at_step_4[@]}"
printf x | dd of="$directory/gpt/step-00000004/model-00001-of-00001.safetensors" bs=1 seek=5000 conv=notrunc 2>/dev/null
reject nonzero "--resume: $directory/gpt/step-00000004/model-00001-of-00001.safetensors: its sha256 is" --ranks 2 --steps 6 "${at_step_4[@]}"

# No room for a file: every save but the last is a warning, the last is an error.
for how in "" --save-async; do
  code=0
  (
    ulimit -f 20
    "$classifier" --ranks-in-process 2 --zero 2 --steps 3 --batch 4 --save "$directory/full" --save-every 1 $how
  ) >"$directory/full.out" 2>"$directory/full.err" || code=$?
  if ((code != 1)) || (($(grep -c "training goes on" "$directory/full.err") != 2)) ||
    ! grep "error.*: the checkpoint of step 3 was not saved: .*File too large" "$directory/full.err" >/dev/null ||
    [[ -n $(ls "$directory/full") ]]; then
    echo "FAILED: a save without room $how ended with $code" >&2
    cat "$directory/full.err" >&2
    failed=1
  fi
done
exit $failed
