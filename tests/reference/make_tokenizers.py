#!/usr/bin/env python3
"""Makes the tokenizer_* files: small vocabularies by Hugging Face's `tokenizers`, a text, and its ids by them.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tokenizers==0.23.3
    /tmp/venv/bin/python tests/reference/make_tokenizers.py                 # rewrites the files here
    /tmp/venv/bin/python tests/reference/make_tokenizers.py --output /tmp/x # or puts them elsewhere

  tokenizer_text.txt        the text: languages, code, digits, emoji, accents as characters of their own, runs of white
                            space, special tokens
  tokenizer_gpt2.json       ByteLevel with its own expression, the text of GPT-2
  tokenizer_gpt2_merges.txt, tokenizer_gpt2_vocab.json   the same vocabulary in GPT-2's two files
  tokenizer_llama3.json     Split by Llama 3's expression, ignore_merges, <|begin_of_text|> before every text
  tokenizer_qwen2.json      NFC, Split by Qwen2's expression, tokens that take white space
  tokenizer_smollm.json     Digits before ByteLevel
  tokenizer_ids.json        {name: ids of the text without special tokens around it}
"""

import argparse
import json
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

PARAGRAPHS = [
    "The quick brown fox jumps over the lazy dog; it's what foxes do, and they'll DO it again. We'RE sure, I'M not.\n",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Das ist – so „hört“ man – nicht ungewöhnlich.\n",
    "Dès Noël où un zéphyr haï me vêt de glaçons würmiens, je dîne d'exquis rôtis de bœuf au kir à l'aÿ d'âge mûr.\n",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Θέλει αρετή και τόλμη η ελευθερία.\n",
    "いろはにほへと ちりぬるを 色は匂へど散りぬるを。天地玄黃，宇宙洪荒。다람쥐 헌 쳇바퀴에 타고파.\n",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. עטלף אבק נס דרך מזגן שהתפוצץ כי חם. ऋषियों को सताने वाले।\n",
    "Cafe\u0301 and re\u0301sume\u0301 and A\u030Angstro\u0308m, o\u0302\u0323 \u1112\u1161\u11AB \u212B \u2126 \u0958.\n",
    "0 1 12 123 1234 12345 3.14159 1,000,000 0xFF 1e-5 ½ ² Ⅷ ٣٤٥ १२३ 2026-11-22T17:00:00Z +49 (0)30 901820\n",
    "😀😃 👩‍👩‍👧‍👦 🇩🇪 👍🏽 ❤️ ☃ \u200b\u200d\ufeff \U0001F9D1\u200D\U0001F680 ⠓⠑⠇⠇⠕ 𝕬𝖇𝖈 \U00020BB7\n",
    "def f(x):\n    if x  <  0:\n\treturn -x\n\n\n        # a comment\r\n\r\n    return {'a': [1, 2], \"b\": None}\n",
    "int main(int argc, char** argv) {\n  for (;;) { ++i; }\n  return a->b[i] && !c || d != e;  // TODO(me): x\n}\n",
    " leading, trailing \n\n   \n\t\t\n \u00a0\u2003\u3000\u0085\u2028\u180e x \u1680y\u205f\u202f z\x0b\x0c\x1c\x00\x7f\n",
    "'s 'S 't' 'Ll 'VE 'd 'D ’s don''t _under_score__ ... !!! ?!?! --- === ~~~ <|not_a_token|> <| |> <|endoftext\n",
    "<|endoftext|>One<|endoftext|><|endoftext|> two <mask> three\t<mask>\n\n<mask>four<tool> <tool>\n",
    "a" * 70 + " " + "ab" * 40 + " " + "-" * 90 + " " * 60 + "end" + "\n" * 9,
]
TEXT = "".join(PARAGRAPHS) + "".join(p.upper() for p in PARAGRAPHS[:4]) + "".join(p[::-1] for p in PARAGRAPHS[:6])


def train(tokenizer, vocabulary_size, special_tokens):
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size, special_tokens=special_tokens, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(TEXT.split("<|endoftext|>"), trainer)
    return tokenizer


def gpt2():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return train(tokenizer, 700, ["<|endoftext|>"])


def with_split(regex, vocabulary_size, normalizer=None):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(regex), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return train(tokenizer, vocabulary_size, ["<|endoftext|>", "<|begin_of_text|>"])


def llama3():
    tokenizer = with_split(LLAMA3, 600)
    # A word that no merges make: whole only because merges are ignored for words of the vocabulary.
    description = json.loads(tokenizer.to_str())
    description["model"]["ignore_merges"] = True
    description["model"]["vocab"]["ĠBoxkÃ¤mpfer"] = len(description["model"]["vocab"])
    tokenizer = Tokenizer.from_str(json.dumps(description))
    begin = "<|begin_of_text|>"
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single=f"{begin} $A", pair=f"{begin} $A {begin} $B",
                                      special_tokens=[(begin, tokenizer.token_to_id(begin))])])
    return tokenizer


def qwen2():
    tokenizer = with_split(QWEN2, 600, normalizers.NFC())
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False, special=False)])
    return tokenizer


def smollm():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer = train(tokenizer, 500, ["<|endoftext|>"])
    tokenizer.add_tokens([AddedToken("fox", normalized=True), AddedToken("foxes", normalized=True, lstrip=True)])
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    output = parser.parse_args().output
    ids = {}
    for name, tokenizer in {"gpt2": gpt2(), "llama3": llama3(), "qwen2": qwen2(), "smollm": smollm()}.items():
        (output / f"tokenizer_{name}.json").write_text(tokenizer.to_str(), encoding="utf-8")
        ids[name] = tokenizer.encode(TEXT, add_special_tokens=False).ids
        if name == "gpt2":
            tokenizer.model.save(str(output), "tokenizer_gpt2")
            for kind in ("vocab.json", "merges.txt"):
                (output / f"tokenizer_gpt2-{kind}").rename(output / f"tokenizer_gpt2_{kind}")
    (output / "tokenizer_text.txt").write_bytes(TEXT.encode())
    (output / "tokenizer_ids.json").write_text(json.dumps(ids) + "\n")


if __name__ == "__main__":
    main()
