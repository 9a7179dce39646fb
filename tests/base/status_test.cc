#include "framework/base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace zg {
namespace {

StatusOr<int> Half(int value) {
  if (value % 2 != 0) {
    return InvalidArgument("half of {}: got an odd number, expected an even one", value);
  }
  return value / 2;
}

StatusOr<int> Quarter(int value) {
  ZG_ASSIGN_OR_RETURN(int half, Half(value));
  ZG_ASSIGN_OR_RETURN(half, Half(half));
  return half;
}

TEST(Status, CarriesCodeMessageAndContext) {
  Status status = DataLoss("{} bytes missing", 3).WithContext("model.safetensors");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "model.safetensors: 3 bytes missing");
  EXPECT_EQ(status.ToString(), "data loss: model.safetensors: 3 bytes missing");
  EXPECT_TRUE(Status::Ok().WithContext("anything").ok());
}

TEST(StatusOr, AssignOrReturnStopsAtTheFirstError) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "half of 3: got an odd number, expected an even one");
}

TEST(StatusOr, HoldsMoveOnlyValues) {
  StatusOr<std::unique_ptr<int>> holder = std::make_unique<int>(4);
  std::unique_ptr<int> owned = std::move(holder).value();
  EXPECT_EQ(*owned, 4);
}

TEST(StatusOrDeathTest, ValueOfAnErrorIsACheckFailure) {
  EXPECT_DEATH({ Half(1).value(); }, "value\\(\\) of an error: half of 1");
}

}  // namespace
}  // namespace zg
