// Round trips of transformers' models (//tools:convert): files come back as the same bytes, and an
// error reports all mismatches together.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/io/directory_test.h"
#include "tests/io/test_file.h"
#include "tests/tools/weight_files.h"
#include "tools/convert/commands.h"

namespace zg::convert_tool {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::Counting;
using ::testing::HasSubstr;
using testing::StoredTensors;

class ConvertModelsTest : public DirectoryTest {
 protected:
  ConvertModelsTest() { fs::create_directory(root_); }

  // A directory as save_pretrained wrote it (tests/reference/make_models.py).
  std::string Reference(const std::string& model) const {
    const std::string directory = Path(model);
    fs::create_directory(directory);
    const std::string reference = "tests/reference/models/" + model;
    fs::copy(reference + "/config.json", directory + "/config.json");
    const std::string split = reference + "/theirs.safetensors";
    fs::copy(fs::exists(split) ? split : reference + "/model.safetensors",
             directory + "/model.safetensors");
    return directory;
  }

  static std::string Done(const StatusOr<std::string>& text) {
    EXPECT_TRUE(text.ok()) << text.status().message();
    return text.ok() ? *text : "";
  }
  static std::string Error(const StatusOr<std::string>& text) {
    EXPECT_FALSE(text.ok());
    return text.ok() ? "" : text.status().message();
  }

  static void ExpectSameFiles(const std::string& a, const std::string& b) {
    for (const std::string& directory : {a, b}) {
      for (const auto& item : fs::directory_iterator(directory)) {
        const std::string name = "/" + item.path().filename().string();
        EXPECT_EQ(ReadTestFile(a + name), ReadTestFile(b + name)) << name;
      }
    }
  }
};

TEST_F(ConvertModelsTest, ThereAndBackIsTheSameBytes) {
  for (const std::string model :
       {"llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe", "mamba", "bert", "vit"}) {
    SCOPED_TRACE(model);
    const std::string theirs = Reference(model), ours = Path(model + ".safetensors");
    EXPECT_THAT(Done(ConvertFrom({theirs, ours})), HasSubstr(ours + ": " + model + ", "));
    EXPECT_EQ(ReadTestFile(ours),
              ReadTestFile("tests/reference/models/" + model + "/model.safetensors"));
    EXPECT_THAT(Done(ConvertTo({ours, Path(model + "_back"), theirs})),
                HasSubstr("tensors in model.safetensors\n"));
    ExpectSameFiles(Path(model + "_back"), theirs);
    // Also from a directory with only config.json.
    fs::remove(theirs + "/model.safetensors");
    Done(ConvertTo({ours, Path(model + "_again"), theirs}));
    ExpectSameFiles(Path(model + "_again"), Path(model + "_back"));
  }
}

TEST_F(ConvertModelsTest, ShardsInSixteenBits) {
  const std::string theirs = Reference("llama");
  StoredTensors tensors;
  for (const auto& [name, tensor] : testing::ReadStored(theirs + "/model.safetensors")) {
    tensors[name] = testing::Rounded(tensor, SafetensorsDType::kBF16);
  }
  fs::remove(theirs + "/model.safetensors");
  testing::WriteSharded(theirs, tensors);
  Done(ConvertFrom({theirs, Path("ours")}));
  EXPECT_EQ(testing::ReadStored(Path("ours")).at("lm_head.weight").bytes,
            tensors["lm_head.weight"].bytes);
  EXPECT_THAT(Done(ConvertTo({Path("ours"), Path("back"), theirs})), HasSubstr("in 2 files\n"));
  ExpectSameFiles(Path("back"), theirs);
  // As f32 in between, which holds every bit.
  Done(ConvertFrom({theirs, Path("wide"), SafetensorsDType::kF32}));
  EXPECT_EQ(testing::ReadStored(Path("wide")).at("lm_head.weight").dtype, SafetensorsDType::kF32);
  Done(ConvertTo({Path("wide"), Path("back_from_wide"), theirs}));
  ExpectSameFiles(Path("back_from_wide"), theirs);
  EXPECT_THAT(
      Error(ConvertTo({Path("ours"), Path("x"), theirs, "", SafetensorsDType::kF16})),
      HasSubstr("--dtype: got F16, but " + theirs + " has weights, whose dtypes are taken"));
}

// Names of other versions, copies of tied tensors, heads of other tasks.
TEST_F(ConvertModelsTest, FilesOfOtherVersions) {
  const std::string theirs = Reference("bert");
  const StoredTensors plain = testing::ReadStored(theirs + "/model.safetensors");
  StoredTensors old;
  for (const auto& [plain_name, tensor] : plain) {
    std::string name = plain_name;
    for (const auto& [now, before] :
         {std::pair("LayerNorm.weight", "gamma"), std::pair("LayerNorm.bias", "beta")}) {
      if (const size_t place = name.rfind(now); place != name.npos) {
        name = name.substr(0, name.rfind('.') + 1) + before;
      }
    }
    old[name] = tensor;
  }
  old["cls.predictions.decoder.weight"] = plain.at("bert.embeddings.word_embeddings.weight");
  old["cls.predictions.decoder.bias"] = plain.at("cls.predictions.bias");
  old["bert.embeddings.position_ids"] = {
      SafetensorsDType::kI64, {1, 16}, std::string(16 * 8, '\1')};
  old["bert.pooler.dense.bias"] = Counting({32});
  testing::WriteStored(theirs + "/model.safetensors", old);
  EXPECT_EQ(old.count("bert.embeddings.LayerNorm.gamma"), 1u);
  EXPECT_THAT(Done(ConvertFrom({theirs, Path("ours")})),
              HasSubstr("left out, as our model has them once or has nothing for them: "
                        "cls.predictions.decoder.weight, cls.predictions.decoder.bias, "
                        "bert.embeddings.position_ids, bert.pooler.dense.bias\n"));
  EXPECT_EQ(ReadTestFile(Path("ours")),
            ReadTestFile("tests/reference/models/bert/model.safetensors"));
  EXPECT_THAT(Done(ConvertTo({Path("ours"), Path("back"), theirs})),
              HasSubstr("since our model has nothing for them: bert.embeddings.position_ids, "
                        "bert.pooler.dense.bias\n"));
  ExpectSameFiles(Path("back"), theirs);
}

// A tensor of ours that is in parts in theirs.
TEST_F(ConvertModelsTest, ExpertsInSixteenBits) {
  const std::string theirs = Reference("mixtral"),
                    expert = "model.layers.1.block_sparse_moe.experts.";
  StoredTensors tensors;
  for (const auto& [name, tensor] : testing::ReadStored(theirs + "/model.safetensors")) {
    tensors[name] = testing::Rounded(tensor, SafetensorsDType::kBF16);
  }
  testing::WriteStored(theirs + "/model.safetensors", tensors);
  Done(ConvertFrom({theirs, Path("wide"), SafetensorsDType::kF32}));
  EXPECT_EQ(testing::ReadStored(Path("wide")).at("model.layers.1.mlp.experts.down_proj").dtype,
            SafetensorsDType::kF32);
  Done(ConvertTo({Path("wide"), Path("back"), theirs}));
  ExpectSameFiles(Path("back"), theirs);

  StoredTensors ours = testing::ReadStored(Path("wide"));
  ours["model.layers.0.mlp.experts.down_proj"] = Counting({6, 48, 32});
  ours.erase("model.layers.1.mlp.experts.down_proj");
  testing::WriteStored(Path("misshapen"), ours);
  const std::string error = Error(ConvertTo({Path("misshapen"), Path("x"), theirs}));
  EXPECT_THAT(error, HasSubstr("  model.layers.0.mlp.experts.down_proj: got the shape [6,48,32], "
                               "expected [6,32,48]\n"
                               "  model.layers.1.mlp.experts.down_proj: is missing"));
  EXPECT_EQ(error.find("down_proj: is missing"), error.rfind("down_proj: is missing")) << error;

  tensors.erase(expert + "3.w1.weight");
  testing::WriteStored(theirs + "/model.safetensors", tensors);
  EXPECT_THAT(Error(ConvertFrom({theirs, Path("y")})),
              HasSubstr("  " + expert + "3.w1.weight: is missing"));
}

TEST_F(ConvertModelsTest, Gpt2) {
  const std::string theirs = Path("gpt2");
  fs::create_directory(theirs);
  std::ofstream(theirs + "/config.json")
      << R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 16, "n_positions": 8, "vocab_size": 37,
             "n_head": 4})";
  for (const std::string prefix : {"", "transformer."}) {
    StoredTensors tensors;
    for (const auto& [name, tensor] : testing::ReadStored("tests/reference/gpt2.safetensors")) {
      tensors[prefix + name] = tensor;
    }
    testing::WriteStored(theirs + "/model.safetensors", tensors);
    Done(ConvertFrom({theirs, Path("ours" + prefix)}));
    EXPECT_EQ(ReadTestFile(Path("ours" + prefix)), ReadTestFile(Path("ours")));
    Done(ConvertTo({Path("ours"), Path("back" + prefix), theirs}));
    ExpectSameFiles(Path("back" + prefix), theirs);
  }
  const StoredTensors ours = testing::ReadStored(Path("ours"));
  EXPECT_EQ(ours.at("blocks.0.mlp.expand.weight").shape, (std::vector<int64_t>{64, 16}));
}

TEST_F(ConvertModelsTest, SizesByName) {
  const std::string theirs = Reference("bert");
  Done(ConvertFrom({theirs, Path("ours")}));
  ToOptions options = {Path("ours"), Path("back")};
  EXPECT_THAT(Error(ConvertTo(options)), HasSubstr("--to: got neither of --like and --preset"));
  options.preset = "bert/tiny";
  EXPECT_THAT(Error(ConvertTo(options)),
              HasSubstr("bert.embeddings.word_embeddings.weight: got the shape [61,32], expected "
                        "[257,128]"));
  options.preset = "bert/small";
  EXPECT_THAT(Error(ConvertTo(options)),
              HasSubstr("--preset: got bert/small, expected one of llama/mini, "));
  options.like = theirs;
  EXPECT_THAT(Error(ConvertTo(options)), HasSubstr("--to: got both of --like and --preset"));
  EXPECT_FALSE(fs::exists(Path("back")));
}

TEST_F(ConvertModelsTest, EverythingThatDoesNotFitIsTold) {
  const std::string theirs = Reference("llama");
  StoredTensors tensors = testing::ReadStored(theirs + "/model.safetensors");
  tensors.erase("model.norm.weight");
  tensors["stranger"] = Counting({1});
  tensors["model.layers.0.mlp.up_proj.weight"] = Counting({48, 31});
  tensors["model.layers.1.input_layernorm.weight"] = {
      SafetensorsDType::kI32, {32}, std::string(128, 0)};
  testing::WriteStored(theirs + "/model.safetensors", tensors);
  const std::string message = Error(ConvertFrom({theirs, Path("ours")}));
  EXPECT_THAT(message,
              HasSubstr(theirs + ": the tensors are not those of this config.json (llama):"));
  for (const char* line :
       {"model.norm.weight: is missing", "\"stranger\": is not expected",
        "model.layers.0.mlp.up_proj.weight: got the shape [48,31], expected [48,32]",
        "model.layers.1.input_layernorm.weight: got I32, expected F32, F16 or BF16"}) {
    EXPECT_THAT(message, HasSubstr(std::string("\n  ") + line));
  }
  EXPECT_THAT(message, HasSubstr("\n  hint: give weights and the config.json of one model"));
  EXPECT_FALSE(fs::exists(Path("ours")));
}

TEST_F(ConvertModelsTest, ATiedCopyMustBeOne) {
  const std::string theirs = Reference("qwen2");
  StoredTensors tensors = testing::ReadStored(theirs + "/model.safetensors");
  tensors["lm_head.weight"] = tensors.at("model.embed_tokens.weight");
  tensors["lm_head.weight"].bytes[5] ^= 1;
  testing::WriteStored(theirs + "/model.safetensors", tensors);
  EXPECT_THAT(Error(ConvertFrom({theirs, Path("ours")})),
              HasSubstr("lm_head.weight: differs from model.embed_tokens.weight, but our model has "
                        "one tensor for both"));
}

TEST_F(ConvertModelsTest, AConfigOfAnotherModelIsRefused) {
  const std::string theirs = Reference("vit");
  const Json config = Json::parse(ReadTestFile(theirs + "/config.json"));
  const auto error_with = [&](const char* key, const Json& value) {
    Json changed = config;
    changed[key] = value;
    std::ofstream(theirs + "/config.json") << changed.dump();
    return Error(ConvertFrom({theirs, Path("ours")}));
  };
  EXPECT_THAT(error_with("hidden_act", "relu"),
              HasSubstr("\n  hidden_act: got \"relu\", expected \"gelu\""));
  EXPECT_THAT(
      error_with("model_type", "t5"),
      HasSubstr(
          "model_type: got \"t5\", expected one of llama, mistral, qwen2, qwen3, mixtral, qwen3_moe, mamba, "
          "bert, vit, gpt2"));
  EXPECT_THAT(error_with("model_type", nullptr), HasSubstr("model_type: got nothing"));
  EXPECT_THAT(error_with("num_hidden_layers", 3),
              HasSubstr("vit.encoder.layer.2.attention.attention.query.weight: is missing"));
  std::ofstream(theirs + "/config.json") << "{";
  EXPECT_THAT(Error(ConvertFrom({theirs, Path("ours")})), HasSubstr("config.json: not valid JSON"));
  fs::remove(theirs + "/config.json");
  EXPECT_THAT(Error(ConvertFrom({theirs, Path("ours")})), HasSubstr("config.json"));
}

TEST_F(ConvertModelsTest, DamagedFiles) {
  const std::string theirs = Reference("bert");
  fs::resize_file(theirs + "/model.safetensors", fs::file_size(theirs + "/model.safetensors") - 1);
  EXPECT_THAT(Error(ConvertFrom({theirs, Path("ours")})), HasSubstr("it is truncated"));
  fs::remove(theirs + "/model.safetensors");
  EXPECT_THAT(Error(ConvertFrom({theirs, Path("ours")})), HasSubstr("there are no weights"));
  testing::WriteSharded(theirs,
                        testing::ReadStored("tests/reference/models/bert/model.safetensors"));
  fs::remove(theirs + "/model-00002-of-00002.safetensors");
  EXPECT_THAT(Error(ConvertFrom({theirs, Path("ours")})), HasSubstr("no such file"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), {}), 1);  // nothing was written
}

TEST_F(ConvertModelsTest, NothingIsReplacedUnasked) {
  const std::string theirs = Reference("vit");
  std::ofstream(Path("ours")) << "mine";
  EXPECT_THAT(Error(ConvertFrom({theirs, Path("ours")})), HasSubstr("give --force to replace it"));
  EXPECT_EQ(ReadTestFile(Path("ours")), "mine");
  Done(ConvertFrom({theirs, Path("ours"), std::nullopt, true}));
  EXPECT_THAT(Error(ConvertTo({Path("ours"), theirs, theirs})), HasSubstr("is there already"));
  // Overwrites its own template.
  Done(ConvertTo({Path("ours"), theirs, theirs, "", std::nullopt, true}));
  EXPECT_EQ(ReadTestFile(theirs + "/model.safetensors"), ReadTestFile(Path("ours")));
  std::ofstream(theirs + "/tokenizer.json") << "{}";
  EXPECT_THAT(Error(ConvertTo({Path("ours"), theirs, theirs, "", std::nullopt, true})),
              HasSubstr("also holds tokenizer.json, which --force would remove"));
}

}  // namespace
}  // namespace zg::convert_tool
