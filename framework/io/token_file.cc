#include "framework/io/token_file.h"

#include <limits>

#include "framework/base/check.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "token files are little-endian");

namespace zg {
namespace {

using Header = int32_t[kTokenHeaderBytes / sizeof(int32_t)];

}  // namespace

StatusOr<TokenFileWriter> TokenFileWriter::Create(const std::string& path,
                                                  int64_t vocabulary_size) {
  ZG_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  const Header none = {};  // until the number of tokens is known
  ZG_RETURN_IF_ERROR(file.Write(none, sizeof(none)));
  return TokenFileWriter(std::move(file), vocabulary_size <= 65536 ? kU16TokenFile : kU32TokenFile,
                         vocabulary_size);
}

Status TokenFileWriter::Write(const std::vector<uint32_t>& tokens) {
  for (const uint32_t token : tokens) {
    ZG_CHECK(token < vocabulary_size_, "token {} of a vocabulary of {}", token, vocabulary_size_);
  }
  num_tokens_ += static_cast<int64_t>(tokens.size());
  if (format_.token_bytes == 4) return file_.Write(tokens.data(), tokens.size() * 4);
  narrow_.assign(tokens.begin(), tokens.end());
  return file_.Write(narrow_.data(), narrow_.size() * 2);
}

Status TokenFileWriter::Commit() {
  if (num_tokens_ == 0 || num_tokens_ > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("{}: got {} tokens, expected from 1 to {} in one token file",
                           file_.path(), num_tokens_, std::numeric_limits<int32_t>::max());
  }
  const Header header = {format_.magic, format_.version, static_cast<int32_t>(num_tokens_)};
  ZG_RETURN_IF_ERROR(file_.Rewrite(0, header, sizeof(header)));
  return file_.Commit();
}

}  // namespace zg
