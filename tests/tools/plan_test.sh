#!/usr/bin/env bash
# plan_test.sh EXPECT_ERROR PLAN CLASSIFIER: the program plan: its files, its exit codes, its errors;
# its times, estimated from the measurements of a run of another program.
set -uo pipefail
expect_error=./$1
plan=./$2
classifier=./$3
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
failed=0

accept() { # TEXT ARG...: exit code 0 and TEXT on standard output
  local text=$1 output
  shift
  if ! output=$("$plan" "$@" 2>&1) || [[ $output != *"$text"* ]]; then
    echo "FAILED: plan $*: expected exit code 0 and: $text"
    echo "got: $output"
    failed=1
  fi
}
reject() { # TEXT ARG...: exit code 2 and TEXT on standard error
  local text=$1
  shift
  "$expect_error" "$plan" 2 "$text" -- "$@" || failed=1
}

small=(--layers 2 --embd 24 --context 12 --batch 2)
accept "4 ranks, ZeRO stage 2, 4 micro-batches per step" "${small[@]}" --ranks 4 --zero 2 \
  --json "$files/plan.json" --html "$files/plan.html"
for part in '"predicted"' '"reduce_scatter"' '"stages"' '"warnings"'; do
  grep -qF "$part" "$files/plan.json" || { echo "FAILED: no $part in the JSON"; failed=1; }
done
grep -q '</html>' "$files/plan.html" || { echo "FAILED: the page is not whole"; failed=1; }
accept "fits into 1.0 GB: --zero 0 --batch 2 --micro-batches 1" "${small[@]}" --fit 1G \
  --json "$files/fit.json"
for part in '"fit": 1000000000' '"front"' '"command": "bazel run'; do
  grep -qF "$part" "$files/fit.json" || { echo "FAILED: no $part in the JSON"; failed=1; }
done
accept "2,blocks.*=3" "${small[@]}" --ranks 4 --zero '2,blocks.*=3'
accept "8.03G parameters" --model llama --preset llama3-8b --context 1024 --batch 1 --ranks 8 --zero 3 \
  --no-compare-stages
accept "bazel run -c opt //models/gpt -- --layers 2 --heads 6 --embd 24 --context 12 --vocab 256 --ranks 4 " \
  "${small[@]}" --ranks 4 --ranks-per-host 2 --fit 1G --no-compare-stages
accept " --bucket-mb 2 --dtype bf16 --clip-norm 0.5" "${small[@]}" --fit 1G --clip-norm 0.5 --dtype bf16 --bucket-mb 2
accept "to fit into 1.0 GB" "${small[@]}" --ranks 2 --fit 1G --shard-min-elements 1000000000 --zero 2 --recompute 'blocks.*'
accept "1.95G parameters on 8 ranks" --params 1.95e9 --ranks 8 --json "$files/paper.json"
grep -qF '"elements_sent"' "$files/paper.json" || { echo "FAILED: the paper's JSON"; failed=1; }
accept "80.0M parameters" --model recipe --ranks 1024 --zero 3 --no-compare-stages
accept "34.2k parameters" --model classifier

accept "a part of %bucket" "${small[@]}" --ranks 4 --zero 3 --explain %token_embedding.weight
accept "%mean_loss: f32[] {B}; data: scale {B} -> {B}: all that it is computed from is whole" "${small[@]}" --ranks 4 --explain all
reject "the program has no value" "${small[@]}" --explain %nothing
reject "which --json writes, too" "${small[@]}" --json "$files/one" --html "$files/one"
reject "--explain: --fit searches among many programs" "${small[@]}" --fit 1G --explain %loss
reject "--explain: --params asks for the paper's formulas" --params 1e9 --explain %loss

# The measured costs are those of one rank; two have a little more to do.
"$classifier" --steps 5 --profile --report "$files/prices.json" >"$files/run.out" 2>&1 || {
  echo "FAILED: classifier --profile"
  cat "$files/run.out"
  failed=1
}
by_prices="computing by the prices of $files/prices.json (100.0% of it for shapes that were measured), "
classifier_job=(--model classifier --batch 128 --prices "$files/prices.json" --no-compare-stages)
accept "$by_prices" "${classifier_job[@]}" --json "$files/priced.json"
accept "${by_prices%%(100*}(" "${classifier_job[@]}" --ranks 2
grep -qF '"unpriced": []' "$files/priced.json" || { echo "FAILED: the prices in the JSON"; failed=1; }
"$classifier" --plan --ranks 2 --prices "$files/prices.json" >"$files/run.out" 2>&1
grep -qF "${by_prices%%(100*}(" "$files/run.out" || { echo "FAILED: classifier --plan --prices"; cat "$files/run.out"; failed=1; }
accept "not measured there, at 100 GFLOP/s" "${small[@]}" --fit 1G --prices "$files/prices.json"
"$expect_error" "$classifier" 2 "--prices: $files/prices.json: was measured with --threads 1, but the job has 2" -- \
  --plan --threads 2 --prices "$files/prices.json" || failed=1
reject "--prices: $files/prices.json: was measured with --dtype f32, but the job has bf16" \
  "${classifier_job[@]}" --dtype bf16
reject "--prices: $files/plan.json: is no report of a run with --profile" --prices "$files/plan.json"
reject "--prices: /no/such/file" --prices /no/such/file
reject "--prices: --params asks for the paper's formulas" --params 1e9 --prices "$files/prices.json"

accept "--shard-min-elements" --help
if (($("$plan" --help | wc -L) > 120)); then
  echo "FAILED: --help has lines of more than 120 characters"
  failed=1
fi

reject "--model: got 'resnet', expected gpt, llama, recipe or classifier" --model resnet
reject "--preset: got 'huge', expected mini, gpt2, gpt2-xl, 7.5b, 128b, 1t, llama3-8b, mistral-7b, qwen2-0.5b, qwen2-7b, qwen3-0.6b, qwen3-8b, mixtral-8x7b or qwen3-30b-a3b" \
  --preset huge
reject "--preset: got gpt2, which --model llama does not have" --model llama --preset gpt2
reject "--zero: got '2,blocks.*=3', but --params asks for" --params 1e9 --zero '2,blocks.*=3'
for value in 0 -1 1.5 many; do
  reject "--ranks: got '$value', expected a whole number from 1 to 1048576" --ranks "$value"
done
for value in abc 8X -1G; do
  reject "--fit: got '$value', expected bytes such as 500M, 8G or 8GiB" --fit "$value"
done
reject "too much; --fit 1M would do" "${small[@]}" --fit 1K
reject "unknown flag --rank; did you mean --ranks?" --rank 3
reject "hint: plan --help lists all flags" --bananas
reject "--json: /no/such/directory/p.json: directory /no/such/directory does not exist" \
  --json /no/such/directory/p.json
exit $failed
