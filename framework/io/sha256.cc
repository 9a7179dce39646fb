#include "framework/io/sha256.h"

#include <openssl/evp.h>

#include "framework/base/check.h"

namespace zg {

void Sha256::Free::operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  ZG_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
           "OpenSSL offers no SHA-256");
}

void Sha256::Update(const void* data, size_t size_bytes) {
  ZG_CHECK(EVP_DigestUpdate(context_.get(), data, size_bytes) == 1, "EVP_DigestUpdate failed");
}

std::string Sha256::HexDigest() const {
  // Finishing ends a context, so this finishes a copy.
  const std::unique_ptr<EVP_MD_CTX, Free> copy(EVP_MD_CTX_new());
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int digest_bytes = 0;
  ZG_CHECK(copy != nullptr && EVP_MD_CTX_copy_ex(copy.get(), context_.get()) == 1 &&
               EVP_DigestFinal_ex(copy.get(), digest, &digest_bytes) == 1,
           "EVP_DigestFinal_ex failed");
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < digest_bytes; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

std::string Sha256Hex(const void* data, size_t size_bytes) {
  Sha256 digest;
  digest.Update(data, size_bytes);
  return digest.HexDigest();
}

}  // namespace zg
