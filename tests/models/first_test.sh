#!/usr/bin/env bash
# first_test.sh FIRST README MAIN: the README's first program is models/first word for word, learns,
# has the same bits at every stage, and prints its plan without running.
set -euo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
first=./$1 readme=$2 main=$3
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

for stage in 0 3; do
  "$first" --ranks 2 --zero $stage --batch 64 --steps 150 --report "$out/$stage.json" >/dev/null
done
"$first" --ranks 2 --batch 64 --steps 150 --report "$out/config.json" >/dev/null  # the graph's own stage
"$first" --ranks 3 --zero 2 --plan --json "$out/plan.json" --html "$out/plan.html" >"$out/plan.txt"
grep "^3 ranks, ZeRO stage 2, 3 micro-batches per step, f32" "$out/plan.txt" >/dev/null
grep "script" "$out/plan.html" >/dev/null

# Its step() takes the data of one micro-batch per rank.
code=0
"$first" --ranks 2 --micro-batches 4 >"$out/step.txt" 2>&1 || code=$?
((code == 2))
grep "a step has 2 micro-batches per rank: give step() a function that feeds each of them" "$out/step.txt" >/dev/null

python3 - "$out" "$readme" "$main" <<'PYTHON'
import json
import pathlib
import sys

out = pathlib.Path(sys.argv[1])
reports = {name: json.loads((out / f"{name}.json").read_text()) for name in ("0", "3", "config")}
for name, report in reports.items():
    losses = [step["loss"] for step in report["steps"]]
    assert losses[-1] < 0.5 * losses[0], (name, losses)
    assert report["final"]["param_sha256"] == reports["0"]["final"]["param_sha256"], name
    assert report["memory"]["predicted"] == report["memory"]["measured"], name
assert [reports[name]["config"]["zero"] for name in ("0", "3", "config")] == [0, 3, 2]

plan = json.loads((out / "plan.json").read_text())
assert plan["zero"] == 2 and plan["config"]["ranks"] == 3 and len(plan["stages"]) == 4, plan

program = pathlib.Path(sys.argv[3]).read_text()
assert program.count("\n") <= 40, "the first program has at most 40 lines"
assert program in pathlib.Path(sys.argv[2]).read_text(), "README shows another program than models/first/main.cc"
PYTHON
