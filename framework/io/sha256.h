// Sha256: the SHA-256 digest (FIPS 180-4) of bytes given piece by piece, by OpenSSL.
//
//   Sha256 digest;
//   digest.Update(data, size_bytes);
//   std::string hex = digest.HexDigest();
#pragma once

#include <openssl/types.h>

#include <cstddef>
#include <memory>
#include <string>

namespace zg {

class Sha256 {
 public:
  Sha256();

  void Update(const void* data, size_t size_bytes);

  // 64 lower-case hexadecimal digits, for the bytes given so far; more may follow.
  std::string HexDigest() const;

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const;
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// The digest of one range.
std::string Sha256Hex(const void* data, size_t size_bytes);

}  // namespace zg
