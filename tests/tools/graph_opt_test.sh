#!/usr/bin/env bash
# graph_opt_test.sh GRAPH_OPT: what the tool prints and how it exits.
set -uo pipefail

graph_opt=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# check WHAT EXIT_STATUS TEXT ARGUMENT...: runs the tool; its output or message must contain TEXT.
check() {
  local what=$1 status=$2 text=$3
  shift 3
  local output actual
  output=$("$graph_opt" "$@" 2>&1)
  actual=$?
  if ((actual == status)) && [[ $output == *"$text"* ]]; then return; fi
  echo "FAILED: $what: expected exit status $status and: $text"
  echo "got exit status $actual and: $output"
  failed=1
}

cat >"$work/model.graph" <<'END'
graph "model" mesh(data=2) micro_batches=2
variables:
  %w: f32[3,4] = variable (dtype="f32", shape=[3,4])
    tensor "w" f32[3,4] at 0 init normal(0.02)
forward:
  %x: f32[8,4] = input (dtype="f32", name="x", shape=[8,4])
  %unused: f32[8,4] = relu %x
  %y: f32[8,3] = linear %x, %w
  output %y (name="y")
END
model=$work/model.graph

check "text in, text out" 0 "$(cat "$model")" "$model"
check "standard input" 0 "$(cat "$model")" <"$model"
check "bad standard input" 1 "graph_opt: standard input: got no graph" </dev/null
check "passes" 0 "%y: f32[16,3] {S(0)} = linear %x, %w" "$model" --passes "infer-sbp"
check "a disabled pass" 0 "%unused" "$model" --passes "eliminate-dead-nodes infer-sbp" \
  --disable eliminate-dead-nodes --dump-passes "$work/dumps"
if [[ $(cd "$work/dumps" && echo *) != "00_input.graph 02_after_infer-sbp.graph" ]]; then
  echo "FAILED: dumps: got $(ls "$work/dumps")"
  failed=1
fi
check "dot" 0 'digraph "model"' "$model" --dot
check "list" 0 "eliminate-dead-nodes     Remove what nobody reads." --list
check "times" 0 "eliminate-dead-nodes" "$model" --times --passes eliminate-dead-nodes
check "help" 0 "--passes" --help
check "verify" 0 'graph "model"' "$model" --verify

check "no file" 1 "graph_opt: $work/none: cannot open the file" "$work/none"
check "bad flag" 1 "--bad" --bad
check "bad pass" 1 "graph_opt: --passes:1: unknown pass 'none'" "$model" --passes none
check "bad optimizer" 1 "append-update: got optimizer 'none', expected sgd, adam, adamw, lamb, adafactor or muon" \
  "$model" --passes 'append-update(optimizer="none")'
check "bad learning rate" 1 "append-update: Sgd: lr is -1" "$model" --passes "append-update(lr=-1.0)"
check "bad disabled pass" 1 "cannot disable pass 'none'" "$model" --passes infer-sbp --disable none
sed 's/f32\[8,3\]/f32[8,4]/' "$model" >"$work/bad.graph"
check "bad text" 1 "bad.graph:8:7: %y: got type f32[8,4], expected f32[8,3], which linear gives" \
  "$work/bad.graph"
sed 's/ at 0 / at 1 /' "$model" >"$work/bad.graph"
check "not verified without being asked" 0 'graph "model"' "$work/bad.graph"
check "bad graph" 1 'graph_opt: tensor "w": f32[3,4] at 1 does not lie inside' "$work/bad.graph" \
  --verify

exit "$failed"
