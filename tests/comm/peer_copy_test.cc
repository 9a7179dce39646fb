#include "framework/comm/peer_copy.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <vector>

namespace zg {
namespace {

class PeerCopyTest : public testing::TestWithParam<int64_t> {
 protected:
  PeerCopyTest() { hwy::SetSupportedTargetsForTest(GetParam()); }
  ~PeerCopyTest() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(PeerCopyTest, CopiesAnySizeAtAnyAlignmentAndNoMore) {
  for (int bytes : {0, 1, 63, 1000, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 300001}) {
    for (int shift : {0, 1, 4}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes from " << shift);
      std::vector<std::byte> from(bytes + 64), to(bytes + 64, std::byte{0x5A});
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 % 251);
      std::vector<std::byte> expected = to;
      for (int i = 0; i < bytes; ++i) expected[2 * shift + i] = from[shift + i];
      CopyFromPeer(from.data() + shift, bytes, to.data() + 2 * shift);
      EXPECT_EQ(to, expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, PeerCopyTest,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const testing::TestParamInfo<int64_t>& info) {
                           return std::string(hwy::TargetName(info.param));
                         });

}  // namespace
}  // namespace zg
