#!/usr/bin/env bash
# model_bad_input_test.sh EXPECT_ERROR RESNET VIT LLAMA BERT: what images and models of transformers cannot be.
set -uo pipefail
# What Open MPI leaves behind is not ours to free.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
expect_error=./$1
images=(./"$2" ./"$3")
texts=(./"$4" ./"$5")
references=(tests/reference/models/llama tests/reference/models/bert)
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
failed=0
export EXPECT_ERROR_FIRST=1  # before the configuration
reject() { # PROGRAM TEXT ARG...
  local program=$1 text=$2
  shift 2
  "$expect_error" "$program" nonzero "$text" -- --steps 1 "$@" || failed=1
}

python3 - "$files" <<'PYTHON'
import gzip
import pathlib
import struct
import sys


def write(folder, counts):
    folder.mkdir()
    for part, count in counts.items():
        for kind, shape in ("images-idx3", (count, 28, 28)), ("labels-idx1", (count,)):
            size = 1
            for dim in shape:
                size *= dim
            header = struct.pack(f">I{len(shape)}I", 0x800 + len(shape), *shape)
            with gzip.open(folder / f"{part}-{kind}-ubyte.gz", "wb") as file:
                file.write(header + bytes(size))


folder = pathlib.Path(sys.argv[1])
write(folder / "ten", {"train": 10, "t10k": 10})
write(folder / "no_tests", {"train": 10, "t10k": 0})
write(folder / "one_part", {"train": 10})
PYTHON
for program in "${images[@]}"; do
  reject "$program" "--data: $files/none: is not there" --data "$files/none"
  reject "$program" "--data: $files/one_part/t10k-images-idx3-ubyte.gz: no such file" --data "$files/one_part"
  reject "$program" "--data: $files/no_tests" --data "$files/no_tests"
done
# Only the ResNet leaves out a partly filled step.
reject "${images[0]}" "--batch 8 with --micro-batches 2: data: got 10 samples, expected at least 16" \
  --data "$files/ten" --batch 8 --ranks-in-process 2

reject "${texts[0]}" "--from: tests/reference/models/mixtral is a mixture of experts" --from tests/reference/models/mixtral
reject "${texts[0]}" "--experts: got 4, but the sizes are those of --from" --from tests/reference/models/llama --experts 4
reject "${texts[0]}" "--experts-per-token: got 2, but the sizes are those of --from" --from tests/reference/models/llama --experts-per-token 2
reject "${texts[0]}" "--experts-per-token: got 5, expected at most the number of experts, 4" --experts 4 --experts-per-token 5
reject "${texts[0]}" "--experts-per-token: got 2, expected at most the number of experts, 1" --experts 1
reject "${texts[0]}" "--experts-per-token: got 3, but the model has no experts" --experts-per-token 3
printf '0123456789%.0s' {1..200} >"$files/digits.txt"  # tokens that both models have
: >"$files/empty.txt"
for i in 0 1; do
  program=${texts[i]}
  directory=$files/model$i
  mkdir "$directory"
  cp "${references[i]}/config.json" "$directory"
  data=(--data "$files/digits.txt" --batch 1 --eval-windows 1)
  reject "$program" "--from: $directory: there are no weights" --from "$directory" "${data[@]}"
  printf 'short' >"$directory/model.safetensors"
  reject "$program" "--from: $directory/model.safetensors" --from "$directory" "${data[@]}" --ranks-in-process 2
  reject "$program" "--from: $files/none" --from "$files/none" "${data[@]}"
  reject "$program" "--init: --from ${references[i]} gives first values already" \
    --from "${references[i]}" --init "$directory/model.safetensors" "${data[@]}"
  reject "$program" "--data: $files/empty.txt" --data "$files/empty.txt"
done
exit $failed
