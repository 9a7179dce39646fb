#!/usr/bin/env bash
# trace_test.sh GPT: the trace of a run describes that run. Its lanes, steps and slices nest, its
# bytes and floating-point operations are those of the report, and tracing changes no bit.
set -euo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
gpt=./$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

run_gpt() { # NAME ARG...
  local name=$1
  shift
  "$gpt" --layers 2 --heads 2 --embd 32 --context 16 --batch 2 --micro-batches 4 --sample-tokens 0 \
    --eval-windows 8 --eval-every 1 --bucket-mb 0.02 --steps 3 --report "$directory/$name.json" "$@" >/dev/null
}
run_gpt without
run_gpt processes --ranks 2 --zero 2 --trace "$directory/processes.trace" --trace-steps 2
run_gpt threads --ranks-in-process 4 --zero 3 --trace "$directory/threads.trace" --trace-steps 9 --profile

python3 - "$directory" <<'PYTHON'
import json
import pathlib
import sys

directory = pathlib.Path(sys.argv[1])


def check(name, num_ranks, num_steps):
    report = json.loads((directory / f"{name}.json").read_text())
    trace = json.loads((directory / f"{name}.trace").read_text())
    assert report["final"] == json.loads((directory / "without.json").read_text())["final"], name
    assert (report["profile"] is not None) == (name == "threads"), name
    assert trace["otherData"] == {"model": "gpt"}, trace["otherData"]
    events = trace["traceEvents"]
    assert {event["pid"] for event in events} == set(range(num_ranks))
    starts = []
    for rank in range(num_ranks):
        lane = [event for event in events if event["pid"] == rank]
        names = [event["args"]["name"] for event in lane if event["name"] == "process_name"]
        assert names == [f"rank {rank}"], names
        slices = [event for event in lane if event["ph"] == "X"]
        steps = [event for event in slices if event["name"].startswith("step ")]
        assert [step["name"] for step in steps] == [f"step {i + 1}" for i in range(num_steps)], steps
        starts.append(steps[0]["ts"])
        parts = [event for event in slices if not event["name"].startswith("step ")]
        for step in steps:
            begin, end = step["ts"], step["ts"] + step["dur"]
            inside = [part for part in parts if begin <= part["ts"] and part["ts"] + part["dur"] <= end + 0.01]
            assert len(inside) * num_steps == len(parts), (len(inside), len(parts))
            at = begin
            for part in inside:  # one after the other
                assert part["ts"] >= at - 0.01, part
                at = part["ts"] + part["dur"]
            nodes = [part["args"] for part in inside if part["name"] != "setting inputs"]
            assert len(inside) - len(nodes) == 4 // num_ranks, step
            assert sum(node.get("flops", 0) for node in nodes) == report["speed"]["flops_per_step"], step
            sent = sum(kind["bytes"] for kind in report["communication"]["predicted"].values())
            assert sum(node.get("sent_bytes", 0) for node in nodes) == sent > 0, step
            collectives = [part["name"] for part in inside if "collective" in part.get("cat", "")]
            assert "reduce_scatter" in collectives, collectives
            assert "blocks.1.attention" in {node.get("module") for node in nodes}, nodes
        memory = [event["args"]["bytes"] for event in lane if event["ph"] == "C"]
        peak = report["memory"]["predicted"]["peak"]
        assert 0.5 * peak < max(memory) <= peak and min(memory) > 0, (memory, peak)
    assert max(starts) - min(starts) < 10e6 and min(starts) >= 0, starts  # one clock, in microseconds


check("processes", 2, 2)
check("threads", 4, 3)
PYTHON

# For a file that may have 20 KB: a warning as soon as it is known, an error at the end.
code=0
(
  ulimit -f 20
  run_gpt full --ranks-in-process 2 --zero 1 --trace "$directory/full.trace" --trace-steps 1
) 2>"$directory/full.err" || code=$?
if ((code != 1)) || (($(grep -c "warning: --trace: .*full.trace: cannot be written: File too large" "$directory/full.err") != 1)) ||
  ! grep "^error on rank 0: --trace: .*full.trace: cannot be written: File too large" "$directory/full.err" >/dev/null ||
  [[ ! -s $directory/full.json || -n $(find "$directory" -name 'full.trace*') ]]; then
  echo "FAILED: a trace without room ended with $code" >&2
  cat "$directory/full.err" >&2
  exit 1
fi
