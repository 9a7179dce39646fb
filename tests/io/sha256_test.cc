#include "framework/io/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace zg {
namespace {

std::string Hex(const std::string& text) { return Sha256Hex(text.data(), text.size()); }

// The examples of FIPS 180-4 and NIST's long message.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheDigestOfTheWhole) {
  const std::string text(300, 'x');
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 digest;
    digest.Update(text.data(), cut);
    digest.Update(text.data() + cut, text.size() - cut);
    ASSERT_EQ(digest.HexDigest(), Hex(text)) << cut;
  }
}

TEST(Sha256, HexDigestDoesNotEndTheMessage) {
  Sha256 digest;
  digest.Update("a", 1);
  EXPECT_EQ(digest.HexDigest(), Hex("a"));
  EXPECT_EQ(digest.HexDigest(), Hex("a"));
  digest.Update("bc", 2);
  EXPECT_EQ(digest.HexDigest(), Hex("abc"));
}

}  // namespace
}  // namespace zg
