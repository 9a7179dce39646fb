// The file of --gemm-choices; tests/cuda_emulation tests its use.
#include "framework/train/gemm_choices_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "framework/comm/in_process.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/train/measured_gemms.h"

namespace zg {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kHint[] = "; remove what is damaged, or the file: what it lacks is measured again";

ChoicesOfDevices Two() {
  return {{"H200, cuBLASLt 1", {{"f32 (2, 3) x (3, 4)", {"00ff", 12.5, 13.75}}}},
          {"H100, cuBLASLt 1", {{"f32 (2, 3) x (3, 4)", {"ff00", 25, 25}}}}};
}

std::string ErrorOf(const std::string& text) {
  return ParseGemmChoices("file", text).status().message();
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(GemmChoicesFile, WhatIsWrittenIsRead) {
  const StatusOr<ChoicesOfDevices> read = ParseGemmChoices("file", GemmChoicesAsJson(Two()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(GemmChoicesAsJson(*read), GemmChoicesAsJson(Two()));
  const GemmChoice& choice = read->at("H200, cuBLASLt 1").at("f32 (2, 3) x (3, 4)");
  EXPECT_EQ(choice.algorithm, "00ff");
  EXPECT_EQ(choice.us, 12.5);
  EXPECT_EQ(choice.first_us, 13.75);
}

TEST(GemmChoicesFile, DamageIsAnErrorThatSaysWhere) {
  const std::string text = GemmChoicesAsJson(Two());
  EXPECT_THAT(ErrorOf(text.substr(0, text.size() / 2)), StartsWith("file: not valid JSON: "));
  EXPECT_THAT(ErrorOf(text.substr(0, text.size() / 2)), EndsWith(kHint));
  EXPECT_THAT(ErrorOf(""), StartsWith("file: not valid JSON: "));
  EXPECT_EQ(ErrorOf("{}"),
            std::string("file: \"format_version\": got nothing, expected 1") + kHint);
  EXPECT_EQ(ErrorOf(Replaced(text, "\"format_version\": 1", "\"format_version\": 2")),
            std::string("file: \"format_version\": got 2, expected 1") + kHint);
  EXPECT_THAT(ErrorOf(Replaced(text, "\"choices\"", "\"choice\"")),
              HasSubstr("expected the object \"choices\""));
  const std::string where = "file: \"H200, cuBLASLt 1\": \"f32 (2, 3) x (3, 4)\": ";
  EXPECT_THAT(ErrorOf(Replaced(text, "00ff", "00fe")), StartsWith(where + "\"check\": got \""));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"00ff\"", "255")),
              StartsWith(where + "\"algorithm\": expected a string"));
  EXPECT_THAT(ErrorOf(Replaced(text, "12.5", "\"12.5\"")),
              StartsWith(where + "\"us\": expected a number"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"first_us\"", "\"x\": 1, \"first_us\"")),
              HasSubstr("expected an object of 4 values"));
  EXPECT_THAT(ErrorOf("{\"format_version\": 1, \"choices\": {\"H200\": []}}"),
              StartsWith("file: \"H200\": expected an object of products"));
}

// An entry belongs to its device and its product.
TEST(GemmChoicesFile, AnEntryInAnothersPlaceIsDamage) {
  const std::string text = GemmChoicesAsJson(Two());
  EXPECT_THAT(ErrorOf(Replaced(text, "H100", "A100")), HasSubstr("\"check\": got"));
  EXPECT_THAT(ErrorOf(Replaced(text, "(2, 3) x (3, 4)", "(2, 3) x (3, 5)")),
              HasSubstr("\"check\": got"));
}

TEST(GemmChoicesFile, AddsToWhatIsThere) {
  const std::string path = ::testing::TempDir() + "/adds.json";
  std::filesystem::remove(path);
  EXPECT_TRUE(ReadGemmChoices(path)->empty());
  ASSERT_TRUE(AddToGemmChoices(path, "H200, cuBLASLt 1", Two()["H200, cuBLASLt 1"]).ok());
  ASSERT_TRUE(AddToGemmChoices(path, "H100, cuBLASLt 1", Two()["H100, cuBLASLt 1"]).ok());
  EXPECT_EQ(GemmChoicesAsJson(*ReadGemmChoices(path)), GemmChoicesAsJson(Two()));

  std::ofstream(path) << "damaged";
  EXPECT_FALSE(AddToGemmChoices(path, "H200, cuBLASLt 1", {}).ok());
}

TEST(MeasuredGemms, TheCpuHasNoChoices) {
  const Status status = RunRanks(2, [](Communicator& communicator) {
    return MeasuredGemms::Open("file", CpuKernels(), communicator).status();
  });
  EXPECT_THAT(status.message(), HasSubstr("`gemm_choices`: got file, but the ranks compute on the "
                                          "CPU"));
}

}  // namespace
}  // namespace zg
