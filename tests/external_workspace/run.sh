#!/usr/bin/env bash
# run.sh BAZEL_FLAG...: builds this project, which has Zerograph as an external repository, and runs it.
#
# Not a test of `bazel test //...`: it starts Bazel itself, and compiles the libraries once more, under
# other paths. With --disk_cache only what changed since the last time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fail() {
  echo "external_workspace: $*" >&2
  exit 1
}

# Debian's bazelrc floods the output with --sandbox_debug. GPU kernels are tested elsewhere. Optimisation is
# low, because compiling takes longer here than running.
readonly flags=(--noshow_progress --nosandbox_debug --repo_env=ZG_CUDA=off
  --compilation_mode=dbg --copt=-O1 --copt=-g0 --dynamic_mode=off "$@")
bazel build "${flags[@]}" //...
bazel test "${flags[@]}" --test_output=errors //...

# Do not leave the Bazel server behind on a machine that is not a developer's.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; [[ -z ${CI:-} ]] || bazel shutdown' EXIT

# trains PROGRAM STAGE [PATH]: prints the digest of the parameters; the loss must go down.
trains() {
  timeout -k 5 120 "${3:-bazel-bin/$1}" --steps 40 --ranks 2 --zero "$2" --report "$scratch/report" >/dev/null ||
    fail "$1 --zero $2 failed"
  python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
losses = [step["loss"] for step in report["steps"]]
assert losses[-1] < 0.7 * losses[0], losses
print(report["final"]["param_sha256"])' "$scratch/report" || fail "$1 --zero $2 does not learn"
}

for program in first_program own_op; do
  [[ $(trains $program 0) == "$(trains $program 3)" ]] || fail "$program: stage 3 has other bits than stage 0"
  timeout -k 5 120 "./bazel-bin/$program" --ranks 2 --zero 3 --plan >/dev/null || fail "$program --plan failed"
done

# What a user builds: optimised, with the flags and the prelude that tools/cc.bzl brings along. Its bits are
# those of the same program in this workspace, which is built as .ci/run builds it.
bazel build --noshow_progress --nosandbox_debug --repo_env=ZG_CUDA=off --compilation_mode=opt "$@" //:first_program
theirs=$(trains first_program 2)
(cd ../.. && bazel build --config=werror --noshow_progress //models/first)
ours=$(trains first 2 ../../bazel-bin/models/first/first)
[[ $theirs == "$ours" ]] || fail "first_program has the parameters $theirs, //models/first $ours"
