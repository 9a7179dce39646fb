#!/usr/bin/env bash
# metrics_test.sh RECIPE CLASSIFIER GPT EXPECT_ERROR READ_METRICS: reads what programs write with
# --metrics, by a reader of our own: after a whole run, a resumed one, a killed one, and one on a full
# disk.
set -euo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
recipe=./$1 classifier=./$2 gpt=./$3 expect_error=./$4 reader=./$5
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failed=0

run_classifier() { # NAME ARG...
  local name=$1
  shift
  "$classifier" --micro-batches 2 --report "$directory/$name.json" "$@" >"$directory/$name.out"
}
run_classifier whole --steps 8
run_classifier first --steps 6 --ranks 2 --zero 2 --metrics "$directory/classifier" \
  --save "$directory/saved" --save-every 4
run_classifier then --steps 8 --ranks-in-process 2 --zero 3 --metrics "$directory/classifier" \
  --resume "$directory/saved/step-00000004" --metrics-histograms 3
grep "^metrics in .*: removed 2 steps after step 4, to be taken again$" "$directory/then.out" >/dev/null

gpt_flags=(--layers 1 --heads 2 --embd 16 --context 16 --batch 2 --micro-batches 2 --sample-tokens 0
  --eval-windows 4 --eval-every 2 --clip-norm 1 --metrics "$directory/gpt" --metrics-histograms 2)
"$gpt" "${gpt_flags[@]}" --ranks 2 --steps 5 --report "$directory/gpt.json" --save "$directory/saved_gpt" >/dev/null
"$gpt" "${gpt_flags[@]}" --steps 5 --resume "$directory/saved_gpt" >/dev/null # nothing left to do but to evaluate

"$classifier" --ranks-in-process 2 --steps 1000000 --metrics "$directory/killed" >/dev/null &
for ((i = 0; i < 300; ++i)); do
  (($(cat "$directory/killed/metrics.jsonl" 2>/dev/null | wc -l) > 20)) && break
  sleep 0.1
done
kill -KILL $!
wait $! 2>/dev/null || true

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(dirname "$reader") python3 - "$directory" <<'PYTHON'
import json
import pathlib
import sys

import read_metrics

directory = pathlib.Path(sys.argv[1])
ALWAYS = {"loss", "lr", "ms", "samples_per_s", "arena_bytes", "private_bytes"}


def report(name):
    return json.loads((directory / f"{name}.json").read_text())


def check(values, steps):
    assert list(values) == [step["step"] for step in steps], values.keys()
    for step in steps:
        for name in ["loss", "lr", "grad_norm"]:
            value = values[step["step"]].get(name)
            assert value == step[name] or abs(value - step[name]) < 1e-8 * abs(step[name]), (step, value)


values = read_metrics.read(directory / "classifier")
check(values, report("whole")["steps"])
assert report("then")["final"] == report("whole")["final"]
for step, scalars in values.items():
    assert scalars.keys() - {"accuracy"} == ALWAYS, (step, scalars)
    assert ("accuracy" in scalars) == (step == 8), (step, scalars)
peaks = {step: report("first" if step < 5 else "then")["memory"]["measured"]["peak"] for step in values}
assert {step: scalars["arena_bytes"] for step, scalars in values.items()} == peaks
assert all(1e6 < scalars["private_bytes"] < 1e11 for scalars in values.values())

values = read_metrics.read(directory / "gpt")
check(values, report("gpt")["steps"])
assert [step for step, scalars in values.items() if "validation_loss" in scalars] == [2, 4, 5], values
for scalars in values.values():
    assert scalars.keys() - {"validation_loss"} == ALWAYS | {"grad_norm", "tokens_per_s"}, scalars
    assert abs(scalars["tokens_per_s"] - 16 * scalars["samples_per_s"]) < 1e-6 * scalars["tokens_per_s"], scalars
    assert abs(scalars["samples_per_s"] * scalars["ms"] / 1000 - 4) < 1e-6, scalars

gradients = read_metrics.read_histograms(directory / "gpt")
assert list(gradients) == [2, 4], gradients.keys()
for histograms in gradients.values():
    assert {"gradients/token_embedding.weight", "gradients/blocks.0.mlp.expand.bias"} <= histograms.keys(), histograms.keys()
    assert histograms["gradients/blocks.0.mlp.expand.bias"]["num"] == 64, histograms
    norm = sum(histogram["sum_squares"] for histogram in histograms.values()) ** 0.5
    step = next(step for step, values in gradients.items() if values is histograms)
    assert abs(norm - values[step]["grad_norm"]) < 1e-6 * norm, (step, norm, values[step])
assert list(read_metrics.read_histograms(directory / "classifier")) == [6]

values = read_metrics.read(directory / "killed", was_killed=True)
assert len(values) >= 20 and list(values) == list(range(1, len(values) + 1)), values.keys()
PYTHON

# The file may have 4 KB only: the first step that fails is one warning, and the run ends with an error.
code=0
(
  ulimit -f 4
  "$classifier" --ranks-in-process 2 --steps 40 --metrics "$directory/full"
) 2>"$directory/full.err" | cat >"$directory/full.out" || code=$?
if ((code != 1)) || (($(grep -c "warning: step .*: --metrics: .*: cannot be written: File too large" "$directory/full.err") != 1)) ||
  ! grep "^error on rank 0: --metrics: .*: cannot be written: File too large" "$directory/full.err" >/dev/null ||
  ! grep "^step 40/40" "$directory/full.out" >/dev/null; then
  echo "FAILED: metrics without room ended with $code" >&2
  cat "$directory/full.err" >&2
  failed=1
fi

printf 'a log of something else\n' >"$directory/metrics.jsonl"
for ranks in 1 2; do
  EXPECT_ERROR_FIRST=1 "$expect_error" "$classifier" nonzero \
    "--metrics: $directory/metrics.jsonl: line 1: got 'a log of something else', expected a line of metrics" -- \
    --ranks $ranks --metrics "$directory" || failed=1
done
for flag in metrics trace; do
  "$expect_error" "$recipe" 2 "--$flag: got $directory/m_$flag, but --compare trains four times" -- \
    --plan --compare --$flag "$directory/m_$flag" || failed=1
done
exit $failed
