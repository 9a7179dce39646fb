#!/usr/bin/env bash
# tokenizer_tool_test.sh EXPECT_ERROR TOKENIZER TEXT: the program tokenizer: what it writes, exit
# codes, and what it says on which output.
set -uo pipefail
expect_error=./$1 tool=./$2 text=./$3
source "${BASH_SOURCE[0]%/*}/tool_checks.sh"
same() { # FILE FILE
  cmp "$1" "$2" && return
  failed=1
}
cd "$(dirname "$text")" && text=$(basename "$text") && expect_error=$OLDPWD/$expect_error tool=$OLDPWD/$tool

# Learning twice gives the same file, and so does learning from the parts of a text cut between words.
expect ": 600 tokens of" train --vocab-size 600 --out "$directory/a" --special '<|endoftext|>' --special '<x>' "$text"
expect ": 600 tokens of" train --vocab-size 600 --out "$directory/b" --special '<|endoftext|>' --special '<x>' "$text"
same "$directory/a/tokenizer.json" "$directory/b/tokenizer.json"
expect "fewer than the 900 asked for" train --vocab-size 900 --min-count 9 --out "$directory/c" "$text"
for pattern in gpt2 llama3 qwen2; do
  expect ": 400 tokens" train --vocab-size 400 --pattern "$pattern" --out "$directory/$pattern" "$text"
  expect "tokens, u16, of" encode "$text" --tokenizer "$directory/$pattern" --out "$directory/$pattern.bin"
  expect "tokens" decode "$directory/$pattern.bin" --tokenizer "$directory/$pattern" --out "$directory/$pattern.txt"
  same "$directory/$pattern.txt" "$text"
  "$tool" decode "$directory/$pattern.bin" --tokenizer "$directory/$pattern" >"$directory/printed"
  same "$directory/printed" "$text"
done
# Each file is a text of its own.
printf 'ab' >"$directory/ab"
expect "tokens, u16" encode "$directory/ab" "$directory/ab" --tokenizer "$directory/a" --out "$directory/ab.bin" --after-file '<|endoftext|>'
expect 'ab<|endoftext|>ab<|endoftext|>' decode "$directory/ab.bin" --tokenizer "$directory/a/tokenizer.json"

reject 1 "tokenizer.json: is there already; give --force" train --vocab-size 600 --out "$directory/a" "$text"
expect ": 300 tokens" train --vocab-size 300 --out "$directory/a" --force "$text"
reject 2 "--vocab-size" train --vocab-size 255 --out "$directory/x" "$text"
reject 2 "--vocab-size is required" train --out "$directory/x" "$text"
reject 1 "got 257 tokens, expected from 258" train --vocab-size 257 --special '<a>' --special '<b>' --out "$directory/x" "$text"
reject 1 "special token 'a'" train --vocab-size 300 --special a --out "$directory/x" "$text"
reject 2 "--pattern: bert" train --vocab-size 300 --pattern bert --out "$directory/x" "$text"
reject 1 "/no/such: no such file" train --vocab-size 300 --out "$directory/x" /no/such
reject 1 "is not a directory" train --vocab-size 300 --out "$directory/ab" "$text"
: >"$directory/empty"
reject 1 "empty: the file is empty, expected text" train --vocab-size 300 --out "$directory/x" "$directory/empty"
reject 1 "the file is empty" encode "$directory/empty" --tokenizer "$directory/a" --out "$directory/x.bin"
reject 1 "gpt2.bin: is there already; give --force" encode "$text" --tokenizer "$directory/gpt2" --out "$directory/gpt2.bin"
reject 1 "is read, and cannot be replaced" encode "$directory/ab" --tokenizer "$directory/a" --out "$directory/ab" --force
reject 1 "is read, and cannot be replaced" encode "$text" --tokenizer "$directory/a" --out "$directory/a/tokenizer.json" --force
reject 1 "is read, and cannot be replaced" decode "$directory/ab.bin" --tokenizer "$directory/a" --out "$directory/ab.bin" --force
reject 1 "--after-file: got '<y>', expected an added token of" encode "$text" --tokenizer "$directory/b" --out "$directory/x.bin" --after-file '<y>'
reject 1 "got a directory without a tokenizer" encode "$text" --tokenizer / --out "$directory/x.bin"
reject 2 "--tokenizer is required" encode "$text" --out "$directory/x.bin"
reject 1 "expected tokens below the vocabulary of 300" decode "$directory/gpt2.bin" --tokenizer "$directory/a"
truncate -s -1 "$directory/gpt2.bin"
reject 1 "truncated" decode "$directory/gpt2.bin" --tokenizer "$directory/gpt2"
reject 2 "subcommand"
# No room for the file: an error, and no part of the file is left.
(
  ulimit -f 1
  reject 1 "File too large" encode "$text" --tokenizer "$directory/b" --out "$directory/full.bin"
  exit $failed
) || failed=1
[[ -z $(find "$directory" -name 'full*' -o -name 'x*') ]] || fail "something was left: $(ls "$directory")"
exit $failed
