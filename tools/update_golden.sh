#!/usr/bin/env bash
# update_golden.sh [FILE...]: writes into golden files what their passes change now, below
# `// EXPECT-DIFF`; all of them without arguments. Look at the difference before committing it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

files=()
for file in "$@"; do files+=("$(cd "$OLDPWD" && realpath -- "$file")"); done
if ((${#files[@]} == 0)); then
  mapfile -t files < <(grep -rlE --include='*.graph' '^// RUN:' "$PWD/tests")
fi
if ((${#files[@]} == 0)); then
  echo "update_golden.sh: there are no golden files under tests/" >&2
  exit 1
fi
exec bazel run --noshow_progress --ui_event_filters=-info --show_result=0 -- \
  //tests/testing:golden_runner --update "${files[@]}"
