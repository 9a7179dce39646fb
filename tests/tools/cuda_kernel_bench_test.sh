#!/usr/bin/env bash
# cuda_kernel_bench_test.sh PROGRAM: the kernel benchmark on the CPU, where its numbers mean little:
# it measures every kernel it names and adds them up.
set -uo pipefail
program=$PWD/$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
  echo "cuda_kernel_bench_test: $*: $(cat "$work/out")" >&2
  failed=1
}

"$program" --list >"$work/out" 2>&1 || fail "--list failed"
grep -q "^adam_update  *1 " "$work/out" || fail "--list lacks adam_update"
grep -q "^linear head  *1  *1.27T  *1.8 GB" "$work/out" || fail "--list has other sizes of the head"

small=(--device cpu --preset mini --batch 1 --product-size 64 --copy-mb 1 --cold-mb 1)
"$program" "${small[@]}" --filter embedding >"$work/out" 2>&1 || fail "it failed"
grep -q "^ceilings: .* TFLOP/s .*64 rows.* GB/s (a copy of 1 MiB" "$work/out" || fail "no ceilings"
(($(grep -cE "^embedding.* (memory|products) " "$work/out") == 2)) || fail "expected two kernels"
grep -q "^these kernels in a step: .* ms, floor .* ms$" "$work/out" || fail "no sum"

"$program" "${small[@]}" --filter "layer_norm" --json "$work/json" >"$work/out" 2>&1 || fail "--json failed"
python3 - "$work/json" >"$work/out" 2>&1 <<'PYTHON' || fail "--json"
import json, sys
result = json.load(open(sys.argv[1]))
assert result["sizes"]["batch"] == 1 and result["ceilings"]["bytes_per_s"] > 0, result
rows = {row["name"]: row for row in result["kernels"]}
assert set(rows) == {"layer_norm", "layer_norm_grad", "layer_norm_grad last"}, rows
assert rows["layer_norm"]["times_per_step"] == 13 and rows["layer_norm"]["seconds"] > 0, rows
PYTHON
"$program" --batch 32 --list --json "$work/json" >"$work/out" 2>&1 || fail "--list --json failed"
python3 - "$work/json" >"$work/out" 2>&1 <<'PYTHON' || fail "--list --json"
import json, sys
rows = {row["name"]: row for row in json.load(open(sys.argv[1]))["kernels"]}
assert rows["attention"]["op"] == "attention" and "seconds" not in rows["attention"], rows
assert rows["linear head"]["flops"] == 2 * 32768 * 768 * 50304, rows["linear head"]
PYTHON

"$program" --filter nothing >"$work/out" 2>&1
(($? == 2)) || fail "a wrong filter: exit code"
grep -q "^error: --filter: no kernel has 'nothing' in its name" "$work/out" || fail "a wrong filter"
exit $failed
