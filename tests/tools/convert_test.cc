// Conversion of weights between our names and those of other programs: round trips keep every byte,
// and an error reports all mismatches together.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/io/directory_test.h"
#include "tests/io/test_file.h"
#include "tests/tools/weight_files.h"
#include "tools/checkpoint/commands.h"

namespace zg::checkpoint_tool {
namespace {

namespace fs = std::filesystem;
using testing::Counting;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::StoredTensors;

constexpr char kReference[] = "tests/reference/gpt2.safetensors";  // 2 layers, C 16, T 8, V 37
constexpr auto kF32 = SafetensorsDType::kF32;
constexpr auto kBF16 = SafetensorsDType::kBF16;
constexpr auto kF16 = SafetensorsDType::kF16;

class ConvertTest : public DirectoryTest {
 protected:
  ConvertTest() { fs::create_directory(root_); }

  std::string Write(const std::string& name, const StoredTensors& tensors) const {
    testing::WriteStored(Path(name), tensors);
    return Path(name);
  }

  // Runs a conversion that must work; returns its text.
  static std::string Done(const ConvertOptions& options) {
    const StatusOr<std::string> text = Convert(options);
    EXPECT_TRUE(text.ok()) << text.status().message();
    return text.ok() ? *text : "";
  }

  static std::string Error(const ConvertOptions& options) {
    const StatusOr<std::string> text = Convert(options);
    EXPECT_FALSE(text.ok());
    return text.ok() ? "" : text.status().message();
  }

  ConvertOptions FromGpt2(const std::string& from, const std::string& to) const {
    return {"gpt2", Side::kTheirs, from, Path(to)};
  }

  ConvertOptions ToGpt2(const std::string& from, const std::string& to) const {
    ConvertOptions options = {"gpt2", Side::kOurs, from, Path(to)};
    options.heads = 4;
    return options;
  }
};

TEST_F(ConvertTest, Gpt2ThereAndBackIsTheSameBytes) {
  const std::string said = Done(FromGpt2(kReference, "ours"));
  EXPECT_THAT(said, HasSubstr("ours: 28 tensors, 7312 parameters in F32\n"));
  EXPECT_THAT(said, HasSubstr("tests/reference/config.json is not there"));
  EXPECT_THAT(said, HasSubstr("--layers 2 --heads N --embd 16 --context 8 --vocab 37\n"));

  const StoredTensors theirs = testing::ReadStored(kReference);
  const StoredTensors ours = testing::ReadStored(Path("ours"));
  EXPECT_EQ(ours.at("token_embedding.weight").bytes, theirs.at("wte.weight").bytes);
  const testing::StoredTensor& expand = ours.at("blocks.1.mlp.expand.weight");
  const testing::StoredTensor& c_fc = theirs.at("h.1.mlp.c_fc.weight");
  ASSERT_EQ(expand.shape, (std::vector<int64_t>{64, 16}));
  ASSERT_EQ(c_fc.shape, (std::vector<int64_t>{16, 64}));
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 16; ++column) {
      ASSERT_EQ(expand.bytes.substr(4 * (16 * row + column), 4),
                c_fc.bytes.substr(4 * (64 * column + row), 4));
    }
  }
  Done(ToGpt2(Path("ours"), "theirs"));
  EXPECT_EQ(ReadTestFile(Path("theirs/model.safetensors")), ReadTestFile(kReference));
  // Our config.json can be read back: it has the heads.
  EXPECT_THAT(Done(FromGpt2(Path("theirs"), "again")), HasSubstr("--layers 2 --heads 4 --embd 16"));
  EXPECT_EQ(ReadTestFile(Path("again")), ReadTestFile(Path("ours")));
  EXPECT_THAT(ReadTestFile(Path("theirs/config.json")), HasSubstr("\"eos_token_id\": null"));
}

// Prefixed, with buffers and the tied head, in shards: it is the same model in each form.
TEST_F(ConvertTest, EveryWayToStoreAGpt2) {
  Done(FromGpt2(kReference, "plain"));
  const std::string expected = ReadTestFile(Path("plain"));
  const StoredTensors plain = testing::ReadStored(kReference);
  StoredTensors full;
  for (const auto& [name, tensor] : plain) full["transformer." + name] = tensor;
  full["transformer.h.0.attn.bias"] = {SafetensorsDType::kU8, {1, 1, 8, 8}, std::string(64, 1)};
  full["transformer.h.1.attn.masked_bias"] = Counting({});
  full["lm_head.weight"] = plain.at("wte.weight");
  const std::string said = Done(FromGpt2(Write("full", full), "from_full"));
  EXPECT_THAT(said, HasSubstr("has them once: transformer.h.0.attn.bias, "
                              "transformer.h.1.attn.masked_bias, lm_head.weight\n"));
  EXPECT_EQ(ReadTestFile(Path("from_full")), expected);

  // The tied head is stored instead of the embedding.
  full.erase("transformer.wte.weight");
  Done(FromGpt2(Write("head", full), "from_head"));
  EXPECT_EQ(ReadTestFile(Path("from_head")), expected);

  fs::create_directory(Path("sharded"));
  testing::WriteSharded(Path("sharded"), plain);
  Done(FromGpt2(Path("sharded"), "from_directory"));
  Done(FromGpt2(Path("sharded/model.safetensors.index.json"), "from_index"));
  EXPECT_EQ(ReadTestFile(Path("from_directory")), expected);
  EXPECT_EQ(ReadTestFile(Path("from_index")), expected);
}

TEST_F(ConvertTest, SixteenBitsInAndOut) {
  for (const SafetensorsDType dtype : {kBF16, kF16}) {
    StoredTensors half;
    for (const auto& [name, tensor] : testing::ReadStored(kReference)) {
      half[name] = testing::Rounded(tensor, dtype);
    }
    // 16 bits both ways change nothing, including a NaN's bits.
    half["ln_f.bias"].bytes[0] = '\x01';
    half["ln_f.bias"].bytes[1] = '\x7f';
    const std::string stored = Write("half", half);
    ConvertOptions to_ours = FromGpt2(stored, "ours");
    ConvertOptions to_theirs = ToGpt2(Path("ours"), "theirs");
    to_ours.may_replace = to_theirs.may_replace = true;
    to_ours.dtype = to_theirs.dtype = dtype;
    Done(to_ours);
    Done(to_theirs);
    EXPECT_EQ(ReadTestFile(Path("theirs/model.safetensors")), ReadTestFile(stored));
    EXPECT_THAT(ReadTestFile(Path("theirs/config.json")),
                HasSubstr(dtype == kBF16 ? "\"torch_dtype\": \"bfloat16\""
                                         : "\"torch_dtype\": \"float16\""));
    // f32 holds them exactly.
    half["ln_f.bias"].bytes[1] = '\x10';
    Write("half", half);
    to_ours.dtype = kF32;
    Done(to_ours);
    EXPECT_EQ(testing::ReadStored(Path("ours")).at("final_norm.bias").dtype, kF32);
    Done(to_theirs);
    EXPECT_EQ(ReadTestFile(Path("theirs/model.safetensors")), ReadTestFile(stored));
  }
}

TEST_F(ConvertTest, AValueBeyondF16IsAnError) {
  StoredTensors tensors = testing::ReadStored(kReference);
  tensors["h.1.ln_2.bias"] = Counting({16}, 65510.0f);
  const std::string from = Write("large", tensors);
  ConvertOptions options = FromGpt2(from, "ours");
  options.dtype = kF16;
  EXPECT_THAT(Error(options), HasSubstr("ours: tensor \"blocks.1.norm2.bias\": the value 65520 is "
                                        "beyond F16; choose another dtype"));
  options.dtype = kBF16;
  Done(options);
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), {}), 2);  // no temporary file
}

TEST_F(ConvertTest, VocabularyIsPaddedAndCut) {
  ConvertOptions pad = FromGpt2(kReference, "padded");
  pad.vocabulary = 40;
  EXPECT_THAT(Done(pad), HasSubstr("token_embedding.weight: 3 rows of zeros follow the 37 that "
                                   "were there; a token of theirs has the logit 0\n"));
  const testing::StoredTensor padded =
      testing::ReadStored(Path("padded")).at("token_embedding.weight");
  EXPECT_EQ(padded.shape, (std::vector<int64_t>{40, 16}));
  EXPECT_EQ(padded.bytes,
            testing::ReadStored(kReference).at("wte.weight").bytes + std::string(3 * 16 * 4, '\0'));
  ConvertOptions cut = ToGpt2(Path("padded"), "cut");
  cut.vocabulary = 37;
  EXPECT_THAT(Done(cut), HasSubstr("wte.weight: the last 3 of 40 rows are left out; tokens from 37 "
                                   "on have none\n"));
  EXPECT_EQ(ReadTestFile(Path("cut/model.safetensors")), ReadTestFile(kReference));
  EXPECT_THAT(ReadTestFile(Path("cut/config.json")), HasSubstr("\"vocab_size\": 37,"));

  ConvertOptions same = FromGpt2(kReference, "same");
  same.vocabulary = 37;
  EXPECT_THAT(Done(same), Not(HasSubstr("rows")));
  EXPECT_THAT(Error({"classifier", Side::kTheirs, kReference, Path("x"), kF32, 5}),
              HasSubstr("--vocab: got 5, but classifier has no vocabulary"));
}

TEST_F(ConvertTest, EverythingThatDoesNotFitIsTold) {
  StoredTensors tensors = testing::ReadStored(kReference);
  tensors.erase("h.0.ln_1.bias");
  tensors["stranger"] = Counting({1});
  tensors["h.0.attn.c_attn.weight"].shape = {48, 16};
  tensors["h.1.attn.c_proj.bias"] = Counting({4, 4});
  tensors["h.1.ln_2.bias"] = {SafetensorsDType::kI32, {16}, std::string(64, 0)};
  tensors["wpe.weight"] = Counting({8, 17});
  tensors["transformer.ln_f.bias"] = tensors["ln_f.bias"];
  tensors["lm_head.weight"] = Counting({37, 16});
  const std::string from = Write("wrong", tensors);
  const std::string message = Error(FromGpt2(from, "ours"));
  EXPECT_THAT(message, HasSubstr(from + ": the tensors are not those of this format (gpt2):\n"));
  for (const char* line :
       {"h.0.ln_1.bias: is missing", "\"stranger\": is not expected",
        "h.0.attn.c_attn.weight: got the shape [48,16], expected [16,48]",
        "h.1.attn.c_proj.bias: got the shape [4,4], expected 1 dim",
        "h.1.ln_2.bias: got I32, expected F32, F16 or BF16",
        "wpe.weight: got the shape [8,17], expected [8,16]",
        "ln_f.bias and transformer.ln_f.bias are one tensor",
        "lm_head.weight: differs from wte.weight, but our model has one tensor for both"}) {
    EXPECT_THAT(message, HasSubstr(std::string("\n  ") + line));
  }
  EXPECT_THAT(message, HasSubstr("\n  hint: "));
  EXPECT_FALSE(fs::exists(Path("ours")));

  // A whole block is missing, and one has a number that is far too large.
  tensors = testing::ReadStored(kReference);
  tensors["h.999999.ln_1.weight"] = Counting({16});
  EXPECT_THAT(Error(FromGpt2(Write("far", tensors), "ours")), HasSubstr("and "));
  EXPECT_THAT(Error(FromGpt2(Write("empty", {}), "ours")),
              HasSubstr("h.0.attn.c_attn.weight: is missing"));
  EXPECT_THAT(Error(ToGpt2(kReference, "x")),
              HasSubstr("the tensors are not those of a model of ours for this format (gpt2)"));
}

TEST_F(ConvertTest, AnIndexMustAgreeWithItsFiles) {
  fs::create_directory(Path("sharded"));
  StoredTensors tensors = testing::ReadStored(kReference);
  testing::WriteSharded(Path("sharded"), tensors);
  testing::WriteStored(Path("sharded/model-00002-of-00002.safetensors"),
                       {{"other", Counting({2})}, {"ln_f.bias", tensors["ln_f.bias"]}});
  const std::string message = Error(FromGpt2(Path("sharded"), "ours"));
  EXPECT_THAT(message, HasSubstr("model.safetensors.index.json: the index and its files differ:"));
  EXPECT_THAT(message,
              HasSubstr("other: is in model-00002-of-00002.safetensors, where the index does not"));
  EXPECT_THAT(message, HasSubstr("ln_f.weight: is not in model-00002-of-00002.safetensors"));
  fs::remove(Path("sharded/model-00002-of-00002.safetensors"));
  EXPECT_THAT(Error(FromGpt2(Path("sharded"), "ours")), HasSubstr("no such file"));
  fs::copy(kReference, Path("sharded/model.safetensors"));
  EXPECT_THAT(Error(FromGpt2(Path("sharded"), "ours")), HasSubstr("got both"));
  EXPECT_THAT(Error(FromGpt2(root_, "ours")), HasSubstr("there are no weights; expected"));
  EXPECT_THAT(Error(FromGpt2(Path("none"), "ours")), HasSubstr("none: no such file"));
}

TEST_F(ConvertTest, AConfigOfAnotherModelIsRefused) {
  fs::create_directory(Path("theirs"));
  fs::copy(kReference, Path("theirs/model.safetensors"));
  std::ofstream(Path("theirs/config.json"))
      << R"({"n_layer": 3, "n_embd": 16, "n_positions": 8, "vocab_size": 37, "n_head": 5,
             "activation_function": "relu", "layer_norm_epsilon": 1e-6, "n_inner": 32,
             "scale_attn_by_inverse_layer_idx": true, "tie_word_embeddings": false})";
  const std::string message = Error(FromGpt2(Path("theirs"), "ours"));
  for (const char* line :
       {"n_layer: got 3, expected 2", "n_head: got 5, expected a divisor of n_embd 16",
        "activation_function: got \"relu\", expected \"gelu_new\"",
        "layer_norm_epsilon: got 1e-06, expected 1e-05", "n_inner: got 32, expected 64",
        "scale_attn_by_inverse_layer_idx: got true, expected false",
        "tie_word_embeddings: got false, expected true"}) {
    EXPECT_THAT(message, HasSubstr(std::string("\n  ") + line));
  }
  std::ofstream(Path("theirs/config.json")) << "{";
  EXPECT_THAT(Error(FromGpt2(Path("theirs"), "ours")), HasSubstr("config.json: not valid JSON"));
}

TEST_F(ConvertTest, HeadsMustBeKnown) {
  Done(FromGpt2(kReference, "ours"));
  ConvertOptions options = ToGpt2(Path("ours"), "theirs");
  options.heads = 0;
  EXPECT_THAT(Error(options),
              HasSubstr("does not tell how many heads the model has; give --heads"));
  options.heads = 3;
  EXPECT_THAT(Error(options), HasSubstr("--heads: got 3, expected a divisor of the 16 channels"));
  ConvertOptions import = FromGpt2(kReference, "again");
  import.heads = 4;
  EXPECT_THAT(Error(import), HasSubstr("--heads: got 4, but no config.json is written"));
}

TEST_F(ConvertTest, SequentialThereAndBack) {
  StoredTensors theirs;
  for (const char* layer : {"0", "2", "11"}) {
    theirs[std::string(layer) + ".weight"] = Counting({3, 5});
    theirs[std::string(layer) + ".bias"] = Counting({3}, 100);
  }
  theirs.erase("2.bias");
  const std::string from = Write("theirs", theirs);
  Done({"sequential", Side::kTheirs, from, Path("ours")});
  const StoredTensors ours = testing::ReadStored(Path("ours"));
  EXPECT_EQ(ours.size(), 5u);
  EXPECT_EQ(ours.at("layers.11.weight").bytes, theirs["11.weight"].bytes);
  Done({"sequential", Side::kOurs, Path("ours"), Path("back")});
  EXPECT_EQ(ReadTestFile(Path("back")), ReadTestFile(from));

  theirs.erase("0.weight");
  theirs["11.bias"] = Counting({4});
  const std::string message =
      Error({"sequential", Side::kTheirs, Write("wrong", theirs), Path("x")});
  EXPECT_THAT(message, HasSubstr("0.weight: is missing"));
  EXPECT_THAT(message, HasSubstr("11.bias: got the shape [4], expected [3]"));
}

TEST_F(ConvertTest, ClassifierThereAndBack) {
  const StoredTensors theirs = {{"0.weight", Counting({7, 5})},
                                {"0.bias", Counting({7})},
                                {"2.weight", Counting({3, 7})},
                                {"2.bias", Counting({3})}};
  const std::string from = Write("theirs", theirs);
  Done({"classifier", Side::kTheirs, from, Path("ours")});
  EXPECT_EQ(testing::ReadStored(Path("ours")).at("output.weight").bytes,
            theirs.at("2.weight").bytes);
  Done({"classifier", Side::kOurs, Path("ours"), Path("back")});
  EXPECT_EQ(ReadTestFile(Path("back")), ReadTestFile(from));
}

TEST_F(ConvertTest, NothingIsReplacedUnasked) {
  std::ofstream(Path("ours")) << "mine";
  ConvertOptions import = FromGpt2(kReference, "ours");
  EXPECT_THAT(Error(import), HasSubstr("ours: is there already; give --force to replace it"));
  EXPECT_EQ(ReadTestFile(Path("ours")), "mine");
  import.may_replace = true;
  Done(import);

  fs::create_directory(Path("theirs"));
  ConvertOptions back = ToGpt2(Path("ours"), "theirs");
  EXPECT_THAT(Error(back), HasSubstr("theirs: is there already"));
  back.may_replace = true;
  Done(back);
  back.to += "/";
  Done(back);  // over its own files
  std::ofstream(Path("theirs/tokenizer.json")) << "{}";
  EXPECT_THAT(Error(back), HasSubstr("also holds tokenizer.json, which --force would remove"));
  EXPECT_EQ(ReadTestFile(Path("theirs/tokenizer.json")), "{}");
  back.to = Path("ours");
  EXPECT_THAT(Error(back), HasSubstr("ours: is no directory and cannot be replaced"));
  import.to = Path("theirs");
  EXPECT_THAT(Error(import), HasSubstr("theirs: is no regular file and cannot be replaced"));
  import.to = Path("no/such/place");
  EXPECT_THAT(Error(import), HasSubstr("cannot be created"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), {}), 2);  // no temporary is left
}

}  // namespace
}  // namespace zg::checkpoint_tool
