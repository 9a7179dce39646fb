#!/usr/bin/env bash
# demos_test.sh RECIPE CLASSIFIER GPT BERT LSTM LLAMA MAMBA: the programs as a user starts them, on several ranks under
# mpirun. Reports of different stages and numbers of ranks must hold the same bits, and plans must
# equal measurements.
set -euo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
recipe=./$1 classifier=./$2 gpt=./$3 bert=./$4 lstm=./$5 llama=./$6 mamba=./$7
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT

for stage in 0 1 2 3; do
  "$recipe" --ranks 2 --zero $stage --steps 3 --layers 4 --width 100 --report "$reports/recipe_2_$stage.json" >/dev/null
done
"$recipe" --ranks 1 --micro-batches 2 --steps 3 --layers 4 --width 100 --report "$reports/recipe_1.json" >/dev/null
"$recipe" --ranks 2 --compare --steps 2 --layers 2 --width 50 | grep "parameter sha256" >/dev/null

classifier_flags=(--steps 20 --micro-batches 6 --clip-norm 0.5 --lr-schedule linear --warmup-steps 5)
"$classifier" --ranks 3 --zero 3 "${classifier_flags[@]}" --report "$reports/classifier_3.json" | grep "new samples right" >/dev/null
"$classifier" --ranks 1 --zero 0 "${classifier_flags[@]}" --report "$reports/classifier_1.json" >/dev/null

small_gpt=(--layers 2 --heads 2 --embd 32 --context 32 --batch 2 --steps 4
  --sample-tokens 20 --eval-windows 8 --dropout 0.1 --bucket-mb 0.02)
gpt_flags=("${small_gpt[@]}" --micro-batches 4)
"$gpt" --ranks 2 --zero 3 "${gpt_flags[@]}" --report "$reports/gpt_2.json" | grep "a bigram model of the same text has" >/dev/null
"$gpt" --ranks 4 --zero 2 --profile "${gpt_flags[@]}" --report "$reports/gpt_4.json" | grep "whole step" >/dev/null
ZG_COMM=messages "$gpt" --ranks 2 --zero 1 "${gpt_flags[@]}" --report "$reports/gpt_messages.json" >/dev/null
"$gpt" --mesh replica=2,shard=2 --zero 3 "${gpt_flags[@]}" --report "$reports/gpt_mesh.json" >/dev/null
ZG_COMM=messages "$gpt" --mesh shard=2,replica=2 --zero 2 "${gpt_flags[@]}" --report "$reports/gpt_mesh_messages.json" >/dev/null
"$gpt" --ranks 1 "${gpt_flags[@]}" --report "$reports/gpt_1.json" >/dev/null
gpt_flags_of_6=("${small_gpt[@]}" --micro-batches 6)
"$gpt" --ranks 3 --zero 3 "${gpt_flags_of_6[@]}" --report "$reports/gpt_3.json" >/dev/null
"$gpt" --mesh replica=3 --zero 2 "${gpt_flags_of_6[@]}" --report "$reports/gpt_replica_3.json" >/dev/null
"$gpt" --ranks 1 "${gpt_flags_of_6[@]}" --report "$reports/gpt_1_of_6.json" >/dev/null
# Parameters split over ranks that share micro-batches: bits of their own, at every stage on every mesh.
tensor_flags=(--placement models/gpt/tensor.placement)
"$gpt" --mesh tensor=2 "${tensor_flags[@]}" "${gpt_flags[@]}" --report "$reports/gpt_tensor_1.json" >/dev/null
"$gpt" --mesh data=2,tensor=2 "${tensor_flags[@]}" --zero 3 "${gpt_flags[@]}" --report "$reports/gpt_tensor_2.json" >/dev/null
ZG_COMM=messages "$gpt" --mesh replica=2,tensor=2 "${tensor_flags[@]}" --zero 2 "${gpt_flags[@]}" --report "$reports/gpt_tensor_messages.json" >/dev/null
# Steps at two sizes of the inputs, whose traffic differs where ranks share micro-batches.
sizes_flags=("${gpt_flags[@]}" --short-context 12 --short-steps 2)
"$gpt" --ranks 1 "${sizes_flags[@]}" --report "$reports/gpt_sizes_1.json" >/dev/null
"$gpt" --ranks 4 --zero 3 "${sizes_flags[@]}" --report "$reports/gpt_sizes_4.json" >/dev/null
"$gpt" --mesh tensor=2 "${tensor_flags[@]}" "${sizes_flags[@]}" --report "$reports/gpt_sizes_tensor_1.json" >/dev/null
ZG_COMM=messages "$gpt" --mesh data=2,tensor=2 "${tensor_flags[@]}" --zero 2 "${sizes_flags[@]}" --overlap 1 \
  --report "$reports/gpt_sizes_tensor_2.json" >/dev/null
llama_flags=(--context 32 --batch 2 --steps 2 --eval-windows 4 --data tests/reference/tokenizer_text.txt --sample-tokens 40 --temperature 0)
llama_tensor_flags=("${llama_flags[@]}" --placement models/llama/tensor.placement --micro-batches 2)
"$llama" --mesh data=2,tensor=2 --zero 3 "${llama_tensor_flags[@]}" --report "$reports/llama_tensor_2.json" |
  grep "It continues the validation text with" >/dev/null
"$llama" --mesh tensor=2 "${llama_tensor_flags[@]}" --report "$reports/llama_tensor_1.json" >/dev/null
"$llama" --mesh replica=2,shard=2 --zero 3 "${llama_flags[@]}" --report "$reports/llama_mesh.json" >/dev/null
"$llama" --ranks 1 --micro-batches 4 "${llama_flags[@]}" --report "$reports/llama_1.json" >/dev/null
# Mixtures of experts, which ranks may hold some of.
experts_flags=("${llama_flags[@]}" --experts 4 --micro-batches 2)
"$llama" --ranks 1 "${experts_flags[@]}" --report "$reports/llama_experts_1.json" >/dev/null
"$llama" --ranks 2 --zero 3 "${experts_flags[@]}" --report "$reports/llama_experts_2.json" |
  grep "It continues the validation text with" >/dev/null
"$llama" --ranks 2 --plan "${experts_flags[@]}" | grep "2 of 4 experts per token" >/dev/null
"$llama" --mesh tensor=2 --placement models/llama/experts.placement "${experts_flags[@]}" \
  --report "$reports/llama_experts_tensor_1.json" >/dev/null
"$llama" --mesh data=2,tensor=2 --zero 2 --placement models/llama/experts.placement "${experts_flags[@]}" \
  --report "$reports/llama_experts_tensor_2.json" >/dev/null
"$gpt" --ranks 2 "${gpt_flags[@]}" --tokenizer tests/reference/tokenizer_gpt2.json \
  --data tests/reference/tokenizer_text.txt --validation-fraction 0.3 | grep "bits per byte" >/dev/null
# Virtual ranks are ranks too, and recomputation changes no bit.
"$classifier" --ranks-in-process 3 --zero 2 "${classifier_flags[@]}" --report "$reports/classifier_virtual_3.json" >/dev/null
"$recipe" --ranks-in-process 2 --compare --steps 3 --layers 4 --width 100 --report "$reports/recipe_virtual_2.json" >"$reports/out"
(($(grep -c "^  parameters  sum" "$reports/out") == 4)) # one summary per stage: only rank 0 prints
"$gpt" --ranks-in-process 4 --zero 3 --recompute 'blocks.*' "${gpt_flags[@]}" --report "$reports/gpt_virtual_4.json" >/dev/null
"$gpt" --ranks 2 --zero 2 --recompute 'blocks.*.mlp,blocks.*.attention' "${gpt_flags[@]}" --report "$reports/gpt_recompute_2.json" >/dev/null
for stage in 0 1 2 3; do
  "$gpt" --ranks 2 --zero $stage --reduce-every step "${gpt_flags[@]}" --report "$reports/gpt_step_$stage.json" >/dev/null
done

for dtype in bf16 f16; do
  "$gpt" --dtype $dtype --ranks 2 --zero 3 "${gpt_flags[@]}" --report "$reports/gpt_${dtype}_2.json" >/dev/null
  ZG_COMM=messages "$gpt" --dtype $dtype --ranks 4 --zero 2 "${gpt_flags[@]}" --report "$reports/gpt_${dtype}_4.json" >/dev/null
  "$gpt" --dtype $dtype --ranks 1 "${gpt_flags[@]}" --report "$reports/gpt_${dtype}_1.json" >/dev/null
done
"$gpt" --dtype bf16 --mesh replica=2,shard=2 --zero 3 "${gpt_flags[@]}" --report "$reports/gpt_bf16_mesh.json" >/dev/null

"$gpt" --ranks 2 --zero 3 "${gpt_flags[@]}" --prompt "Some text" --top-k 9 --top-p 0.9 | grep "It continues the prompt with" >/dev/null
"$llama" --ranks 2 --zero 3 "${llama_flags[@]}" --report "$reports/llama_2.json" | grep "It continues the validation text with" >/dev/null

bert_flags=(--data tests/reference/tokenizer_text.txt --preset tiny --context 32 --batch 2 --steps 4 --micro-batches 4 --eval-windows 8)
"$bert" --ranks 2 --zero 3 "${bert_flags[@]}" --report "$reports/bert_2.json" | grep "of 40 hidden tokens right" >/dev/null
"$bert" --ranks 1 "${bert_flags[@]}" --report "$reports/bert_1.json" >/dev/null
lstm_flags=(--data tests/reference/tokenizer_text.txt --hidden 64 --context 16 --batch 4 --steps 3 --micro-batches 4 --eval-windows 8 --sample-tokens 20)
"$lstm" --ranks 2 --zero 3 "${lstm_flags[@]}" --report "$reports/lstm_2.json" | grep "It continues" >/dev/null
"$lstm" --ranks 1 "${lstm_flags[@]}" --report "$reports/lstm_1.json" >/dev/null
mamba_flags=(--data tests/reference/tokenizer_text.txt --context 16 --batch 2 --steps 3 --micro-batches 2 --eval-windows 4 --sample-tokens 40)
"$mamba" --ranks 2 --zero 3 "${mamba_flags[@]}" --report "$reports/mamba_2.json" | grep "It continues" >/dev/null
"$mamba" --ranks 1 "${mamba_flags[@]}" --report "$reports/mamba_1.json" >/dev/null

# Every program of text takes a tokenizer, and has the bits of any number of ranks with it.
tokenizer=(--tokenizer tests/reference/tokenizer_gpt2.json)
for ranks in 1 2; do
  "$llama" --ranks $ranks --micro-batches 4 "${llama_flags[@]}" "${tokenizer[@]}" --prompt fox \
    --report "$reports/llama_tokens_$ranks.json" >"$reports/out"
  grep "bits per byte" "$reports/out" >/dev/null
  grep "It continues the prompt with" "$reports/out" >/dev/null
  "$lstm" --ranks $ranks "${lstm_flags[@]}" "${tokenizer[@]}" --report "$reports/lstm_tokens_$ranks.json" |
    grep "bits per byte" >/dev/null
  "$bert" --ranks $ranks "${bert_flags[@]}" "${tokenizer[@]}" --report "$reports/bert_tokens_$ranks.json" >/dev/null
done

python3 - "$reports" <<'PYTHON'
import json
import pathlib
import sys

reports = {path.stem: json.loads(path.read_text()) for path in pathlib.Path(sys.argv[1]).glob("*.json")}
assert len(reports) == 59, sorted(reports)
bits = {}
for name, report in sorted(reports.items()):
    memory = report["memory"]
    assert memory["predicted"] == memory["measured"], (name, memory)
    assert memory["predicted"]["peak"] > 0, name
    assert set(memory["per_rank_peak"]) == {memory["predicted"]["peak"]}, (name, memory)
    traffic = report["communication"]
    assert traffic["predicted"] == traffic["measured"], (name, traffic)
    losses = [step["loss"] for step in report["steps"]]
    assert all(loss > 0 for loss in losses), (name, losses)
    norms = [step["grad_norm"] for step in report["steps"]]
    has_norm = report["config"]["clip-norm"] > 0 or report["config"]["dtype"] == "f16"
    assert all((norm is not None) == has_norm for norm in norms), (name, norms)
    rates = [step["lr"] for step in report["steps"]]
    final = report["final"]
    found = (losses, norms, rates, final["param_sha256"], final["optimizer_sha256"])
    config = report["config"]
    has_parts = "tensor=2" in config["mesh"]
    setting = (report["model"], config["reduce-every"], config["dtype"], config["micro-batches"], has_parts,
               config.get("tokenizer"), config.get("short-context"), config.get("experts"))
    expected = bits.setdefault(setting, found)
    assert found == expected, f"{name}: other bits than another run of {report['model']}"
assert len(bits) == 21
assert [step["size"] for step in reports["gpt_sizes_4"]["steps"]] == [12, 12, 32, 32]
assert "size" not in reports["gpt_4"]["steps"][0]
lr = reports["classifier_1"]["config"]["lr"]
rates = [step["lr"] for step in reports["classifier_1"]["steps"]]
assert abs(rates[0] - lr / 5) < 1e-9 and rates[4] == lr, rates
assert abs(rates[-1] - 0.1 * lr) < 1e-9, rates
assert reports["gpt_2"]["profile"] is None
profile = reports["gpt_4"]["profile"]
parts = [row["ms"] for row in profile["rows"]] + [profile["feed_ms"], profile["between_nodes_ms"]]
assert profile["steps"] == 3 and all(ms >= 0 for ms in parts), profile
assert abs(sum(parts) - profile["step_ms"]) < 1e-6, profile
assert {"forward", "backward", "update"} == {row["section"] for row in profile["rows"]}, profile
modules = {row["module"]: row["ms"] for row in profile["modules"]}
assert abs(sum(modules.values()) - sum(row["ms"] for row in profile["rows"])) < 1e-6, profile
assert {"blocks.0.attention", "blocks.1.mlp"} <= modules.keys(), modules
assert "reduce_scatter" in {row["op"] for row in profile["rows"]}, profile
PYTHON
