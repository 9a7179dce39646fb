#!/usr/bin/env bash
# gpt_bad_input_test.sh EXPECT_ERROR GPT: rejected data, sizes and initial values.
set -uo pipefail
# Open MPI's leaks are not ours (see tools/mpi_test.sh).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
expect_error=./$1
gpt=./$2
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
failed=0
export EXPECT_ERROR_FIRST=1  # before the configuration
reject() { # CODE TEXT ARG...
  local code=$1 text=$2
  shift 2
  "$expect_error" "$gpt" "$code" "$text" -- "$@" || failed=1
}
small=(--layers 1 --embd 8 --context 16 --steps 1)

: >"$files/empty.txt"
printf 'too short' >"$files/short.txt"
head -c 20000 /dev/zero >"$files/zeros.txt"
printf '\x01' >"$files/odd.bin"
reject nonzero "--data: $files/missing.txt" "${small[@]}" --heads 2 --data "$files/missing.txt"
reject nonzero "--data: $files/empty.txt" "${small[@]}" --heads 2 --data "$files/empty.txt"
reject nonzero "--data with --validation-fraction 0.1: $files/short.txt" "${small[@]}" --heads 2 --data "$files/short.txt"
reject nonzero "--data: $files/odd.bin" "${small[@]}" --heads 2 --data "$files/odd.bin"
reject nonzero "(validation part): got 2000 tokens, expected at least 3001" --layers 1 --embd 8 --heads 2 --steps 1 --data "$files/zeros.txt" --context 3000
reject 2 "--heads: got 3, expected a divisor of --embd 8" "${small[@]}" --heads 3
reject 2 "--layers: got '4611686018427387904', expected a whole number from 1 to 10000" --layers 4611686018427387904
reject 2 "--embd: got '2147483648', expected a whole number from 1 to 1048576" --embd 2147483648
reject 2 "--vocab: got '-1'" "${small[@]}" --heads 2 --data "$files/zeros.txt" --vocab -1
printf 'x%.0s' {1..5000} >"$files/letters.txt"
reject nonzero "--data with --context 600: $files/letters.txt (validation part): got 500 tokens, expected at least 601" \
  --layers 1 --embd 8 --heads 2 --context 600 --steps 1 --data "$files/letters.txt"
reject nonzero "--data with --vocab 100: $files/letters.txt: got token 120 at position 0, expected tokens below the vocabulary of 100" "${small[@]}" --heads 2 --data "$files/letters.txt" --vocab 100
reject nonzero "--tokenizer: $files/none: no such file" "${small[@]}" --heads 2 --data "$files/letters.txt" --tokenizer "$files/none"
reject nonzero "--tokenizer: $files: got a directory without a tokenizer" "${small[@]}" --heads 2 --data "$files/letters.txt" --tokenizer "$files"
reject 2 "--top-p: got '0', expected a number > 0 and <= 1" "${small[@]}" --heads 2 --top-p 0
reject 2 "--top-k: got '-1', expected a whole number >= 0" "${small[@]}" --heads 2 --top-k -1
reject nonzero "--prompt: got a text of 17 tokens, expected at most 16" "${small[@]}" --heads 2 --data "$files/letters.txt" --prompt "seventeen letters"
reject nonzero "--prompt: it has the token 195, the model knows 0 to 127" "${small[@]}" --heads 2 --data "$files/letters.txt" --vocab 128 --prompt "é"
reject 2 "--preset mini sets it already" --preset mini --layers 2
reject 2 "--short-context: got 8, with --short-steps 0; give both of them, or none" "${small[@]}" --heads 2 --short-context 8
reject 2 "--short-context: got 16, expected less than --context 16" "${small[@]}" --heads 2 --short-context 16 --short-steps 1
reject 2 "--preset: got 'huge'" --preset huge
for value in nan inf -1; do
  reject 2 "--lr: got '$value', expected a number >= 0" --lr $value
done
reject 2 "the pattern 'layers.*' matches no module; there are: blocks.0" "${small[@]}" --heads 2 --data "$files/zeros.txt" --recompute 'layers.*'
reject 2 "  with --recompute layers.*" "${small[@]}" --heads 2 --ranks 2 --data "$files/zeros.txt" --recompute 'layers.*'
reject 2 "recompute: got 'blocks.', expected the path of a module" "${small[@]}" --heads 2 --data "$files/zeros.txt" --recompute blocks.
reject 2 "the pattern 'layers.*' matches no module" "${small[@]}" --heads 2 --ranks-in-process 3 --data "$files/zeros.txt" --recompute 'layers.*'
reject nonzero "but --max-memory is 10.0 KB (10000 bytes)" "${small[@]}" --heads 2 --ranks 2 --data "$files/zeros.txt" --max-memory 10K
# Fails on every rank, without a hang.
reject nonzero "missing.txt" "${small[@]}" --heads 2 --ranks 2 --data "$files/missing.txt"
reject nonzero "micro" "${small[@]}" --heads 2 --ranks 2 --micro-batches 3 --data "$files/zeros.txt"

export EXPECT_ERROR_FIRST=  # errors that only appear during the steps
# f16 that no loss scale can help: it stops after a number of steps, on every rank.
reject nonzero "the gradients were not finite in 25 steps in a row" --layers 1 --embd 8 --heads 2 --context 16 --steps 100 \
  --data "$files/zeros.txt" --dtype f16 --lr 1e6 --warmup-steps 0 --ranks 2 --zero 2

# f32 that leaves its range: every rank says so once, and what computed it first is named.
too_fast=(--layers 1 --embd 8 --heads 2 --context 16 --steps 100
  --data "$files/zeros.txt" --lr 1e30 --warmup-steps 0)
reject nonzero ": the loss is nan" "${too_fast[@]}" --ranks 2 --zero 2 --clip-norm 0
reject nonzero "; its inputs were finite" "${too_fast[@]}" --ranks 2 --zero 2 --detect-anomaly

export EXPECT_ERROR_FIRST=1
# Initial values: truncated, a lie about sizes, a missing and a misshapen parameter.
python3 - "$files" <<'PYTHON'
import json
import pathlib
import struct
import sys

folder = pathlib.Path(sys.argv[1])


def write(name, tensors, cut=0, claim=0):
    offset, header = 0, {}
    for tensor, shape in tensors.items():
        size = 4
        for dim in shape:
            size *= dim
        header[tensor] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size + claim]}
        offset += size
    text = json.dumps(header).encode()
    data = struct.pack("<Q", len(text)) + text + bytes(offset)
    (folder / name).write_bytes(data[: len(data) - cut])


write("one.safetensors", {"token_embedding.weight": [256, 8]})
write("misshapen.safetensors", {"token_embedding.weight": [8, 256]})
write("truncated.safetensors", {"token_embedding.weight": [256, 8]}, cut=4)
write("lie.safetensors", {"token_embedding.weight": [256, 8]}, claim=4)
PYTHON
reject nonzero "--init: $files: there are no weights" "${small[@]}" --heads 2 --data "$files/zeros.txt" --init "$files"
reject nonzero "--init: $files/one.safetensors: " "${small[@]}" --heads 2 --data "$files/zeros.txt" --init "$files/one.safetensors"
reject nonzero "'blocks.0.attention.projection.bias' is missing" "${small[@]}" --heads 2 --data "$files/zeros.txt" --init "$files/one.safetensors"
reject nonzero "tensors do not fit the model" "${small[@]}" --heads 2 --ranks 2 --zero 3 --data "$files/zeros.txt" --init "$files/misshapen.safetensors"
reject nonzero "--init: $files/truncated.safetensors" "${small[@]}" --heads 2 --data "$files/zeros.txt" --init "$files/truncated.safetensors"
reject nonzero "--init: $files/lie.safetensors" "${small[@]}" --heads 2 --data "$files/zeros.txt" --init "$files/lie.safetensors"
exit $failed
