#include "models/text/text_flags.h"

namespace zg::models {

void AddTextFlags(FlagParser* parser, TextFlags* flags) {
  parser->section("Data");
  parser->add_strings(
      "data", &flags->data,
      "text files or directories of them, whose bytes are the tokens, or one .bin file of tokens "
      "(nanoGPT, llm.c)",
      "FILE");
  parser->add_string("tokenizer", &flags->tokenizer,
                     "encodes the text: a tokenizer.json, or a directory with one or with GPT-2's "
                     "vocab.bpe and encoder.json; or says what the tokens of a .bin file mean",
                     "PATH");
  parser->add_double("validation-fraction", &flags->validation_fraction, between(0, 1),
                     "share of the data, at its end");
  parser->add_int("eval-windows", &flags->eval_windows, at_least(1),
                  "contexts of validation data in a validation");
}

}  // namespace zg::models
