#!/usr/bin/env bash
# resnet_test.sh RESNET: the same bits, statistics of the normalisations among them, at every stage and
# number of ranks, in the middle of an epoch too; and a run that resumes ends where an unbroken one does.
set -euo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
resnet=./$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

flags=(--train-images 60 --test-images 20 --batch 4 --micro-batches 6 --lr-schedule constant)
for ranks in 1 2 3; do
  for stage in 0 1 2 3; do
    "$resnet" --ranks-in-process $ranks --zero $stage "${flags[@]}" --steps 4 --report "$directory/$ranks.$stage.json" \
      | grep "test images right" >"$directory/$ranks.$stage.accuracy"
    cmp "$directory/1.0.accuracy" "$directory/$ranks.$stage.accuracy"
  done
done
"$resnet" --ranks 2 --zero 2 "${flags[@]}" --steps 4 --report "$directory/processes.json" >/dev/null
"$resnet" --ranks-in-process 3 --zero 3 "${flags[@]}" --steps 1 --save "$directory/saved" >/dev/null
"$resnet" --ranks-in-process 2 --zero 1 "${flags[@]}" --steps 4 --resume "$directory/saved" --report "$directory/resumed.json" >/dev/null

python3 - "$directory" <<'PYTHON'
import json
import pathlib
import sys

reports = {path.stem: json.loads(path.read_text()) for path in pathlib.Path(sys.argv[1]).glob("*.json")}
assert len(reports) == 14, sorted(reports)
first = reports["1.0"]
assert len(first["steps"]) == 4
for name, report in reports.items():
    losses = [step["loss"] for step in report["steps"]]
    assert losses == [step["loss"] for step in first["steps"]][-len(losses):], (name, losses)
    for digest in ("param_sha256", "optimizer_sha256"):
        assert report["final"][digest] == first["final"][digest], (name, digest)
    assert report["memory"]["predicted"] == report["memory"]["measured"], name
    assert report["communication"]["predicted"] == report["communication"]["measured"], name
PYTHON
