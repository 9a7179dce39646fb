#include "framework/io/token_dataset.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "framework/base/check.h"
#include "framework/base/random.h"
#include "framework/io/mapped_file.h"
#include "framework/io/token_file.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "token files are little-endian");

namespace zg {
namespace {

constexpr int32_t kEvaluationMagic = 20240522;  // llm.c's evaluation data, whose tokens are not one
                                                // sequence

// `path` itself; for a directory all files below it, in the order of their paths.
StatusOr<std::vector<std::string>> FilesOf(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  fs::recursive_directory_iterator entry(path, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    if (entry->is_regular_file(error)) files.push_back(entry->path().string());
    entry.increment(error);
  }
  if (error) return FailedPrecondition("{}: cannot be read: {}", path, error.message());
  if (files.empty()) return DataLoss("{}: got a directory without files, expected text", path);
  std::sort(files.begin(), files.end());
  return files;
}

// The position of the tokens in a file.
struct TokenRange {
  uint64_t begin_bytes = 0;
  uint64_t num_tokens = 0;
  int token_bytes = 2;
};

// Checks the header and the size.
StatusOr<TokenRange> FindTokens(const MappedFile& file) {
  const std::string& path = file.path();
  if (file.size() == 0) return DataLoss("{}: the file is empty, expected u16 tokens", path);
  int32_t header[3] = {};
  std::memcpy(header, file.data(), std::min<uint64_t>(sizeof(header), file.size()));
  const auto [magic, version, num_tokens] = header;
  if (magic == kEvaluationMagic) {
    return InvalidArgument(
        "{}: got magic {} (llm.c's evaluation data), expected {} (u16 tokens), {} (u32 tokens) or "
        "no header",
        path, magic, kU16TokenFile.magic, kU32TokenFile.magic);
  }
  if (magic != kU16TokenFile.magic && magic != kU32TokenFile.magic) {
    if (file.size() % 2 == 0) return TokenRange{0, file.size() / 2, 2};
    return DataLoss(
        "{}: got {} bytes, expected an even number: u16 tokens; the file is truncated or "
        "not a token file (text files must not end in .bin)",
        path, file.size());
  }
  const TokenFileFormat format = magic == kU16TokenFile.magic ? kU16TokenFile : kU32TokenFile;
  if (file.size() < kTokenHeaderBytes) {
    return DataLoss(
        "{}: got {} bytes, expected at least the {} of llm.c's header; the file is truncated", path,
        file.size(), kTokenHeaderBytes);
  }
  if (version != format.version) {
    return InvalidArgument("{}: got version {}, expected {}", path, version, format.version);
  }
  if (num_tokens <= 0)
    return DataLoss("{}: got {} tokens in the header, expected some", path, num_tokens);
  const auto count = static_cast<uint64_t>(num_tokens);
  const uint64_t expected = kTokenHeaderBytes + count * format.token_bytes;
  if (file.size() == expected) return TokenRange{kTokenHeaderBytes, count, format.token_bytes};
  return DataLoss("{}: got {} bytes, expected {} for the header and {} u{} tokens; the file is {}",
                  path, file.size(), expected, num_tokens, 8 * format.token_bytes,
                  file.size() < expected ? "truncated" : "longer than its header says");
}

template <typename Token>
int64_t LargestOf(const uint8_t* tokens, uint64_t size) {
  // `tokens` is aligned: it is a page or a page plus llm.c's header.
  const Token* const typed = reinterpret_cast<const Token*>(tokens);
  Token max = 0;
  for (uint64_t i = 0; i < size; ++i) max = std::max(max, typed[i]);
  return size == 0 ? -1 : int64_t{max};
}

int64_t MaxToken(const uint8_t* tokens, uint64_t size, int token_bytes) {
  if (token_bytes == 1) return LargestOf<uint8_t>(tokens, size);
  return token_bytes == 2 ? LargestOf<uint16_t>(tokens, size) : LargestOf<uint32_t>(tokens, size);
}

}  // namespace

// The storage of the tokens: joined text, encoded text, or a mapped file.
struct TokenDataset::Storage {
  std::vector<uint8_t> text;
  std::vector<uint32_t> encoded;
  std::optional<MappedFile> file;
  const uint8_t* tokens = nullptr;
  uint64_t num_tokens = 0;
  int token_bytes = 0;  // 1, 2 or 4
};

bool TokenDataset::IsTokenFile(const std::string& path) {
  constexpr std::string_view kExtension = ".bin";
  return path.size() >= kExtension.size() &&
         path.compare(path.size() - kExtension.size(), kExtension.npos, kExtension) == 0;
}

StatusOr<TokenDataset> TokenDataset::Open(const std::vector<std::string>& paths,
                                          std::optional<int> vocabulary) {
  const auto token_file = std::find_if(paths.begin(), paths.end(), IsTokenFile);
  if (token_file == paths.end()) return FromTextFiles(paths, vocabulary);
  if (paths.size() == 1) return FromTokenFile(paths[0], vocabulary);
  return InvalidArgument(
      "{}: got a .bin file among {} files, expected one .bin file or only text files", *token_file,
      paths.size());
}

StatusOr<TokenDataset> TokenDataset::FromTextFiles(const std::vector<std::string>& paths,
                                                   std::optional<int> vocabulary) {
  if (paths.empty()) return InvalidArgument("text data: got no file, expected one or more");
  auto storage = std::make_shared<Storage>();
  std::vector<uint8_t>& text = storage->text;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> more, FilesOf(path));
    files.insert(files.end(), more.begin(), more.end());
  }
  for (const std::string& path : files) {
    ZG_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    if (file.size() == 0) return DataLoss("{}: the file is empty, expected text", path);
    if (!text.empty() && text.back() != '\n') text.push_back('\n');
    text.insert(text.end(), file.data(), file.data() + file.size());
  }
  storage->tokens = text.data();
  storage->num_tokens = text.size();
  storage->token_bytes = 1;
  TokenDataset data(fmt::format("{}", fmt::join(paths, " + ")), std::move(storage));
  ZG_RETURN_IF_ERROR(data.SetVocabulary(vocabulary.value_or(256)));
  return data;
}

StatusOr<TokenDataset> TokenDataset::FromTokenFile(const std::string& path,
                                                   std::optional<int> vocabulary) {
  ZG_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  ZG_ASSIGN_OR_RETURN(const TokenRange range, FindTokens(file));
  auto storage = std::make_shared<Storage>();
  storage->tokens = file.data() + range.begin_bytes;
  storage->num_tokens = range.num_tokens;
  storage->token_bytes = range.token_bytes;
  storage->file = std::move(file);
  TokenDataset data(path, std::move(storage));
  ZG_RETURN_IF_ERROR(data.SetVocabulary(vocabulary));
  return data;
}

StatusOr<TokenDataset> TokenDataset::FromTokens(const std::string& name,
                                                std::vector<uint32_t> tokens, int vocabulary) {
  auto storage = std::make_shared<Storage>();
  storage->encoded = std::move(tokens);
  storage->tokens = reinterpret_cast<const uint8_t*>(storage->encoded.data());
  storage->num_tokens = storage->encoded.size();
  storage->token_bytes = 4;
  TokenDataset data(name, std::move(storage));
  ZG_RETURN_IF_ERROR(data.SetVocabulary(vocabulary));
  return data;
}

TokenDataset::TokenDataset(std::string name, std::shared_ptr<const Storage> storage)
    : name_(std::move(name)), storage_(std::move(storage)), size_(storage_->num_tokens) {}

Status TokenDataset::SetVocabulary(std::optional<int> vocabulary) {
  if (vocabulary && *vocabulary < 1) {
    return InvalidArgument("{}: got a vocabulary of {}, expected 1 or more", name_, *vocabulary);
  }
  const int64_t largest_possible = int64_t{1} << 8 * storage_->token_bytes;
  if (vocabulary && *vocabulary >= largest_possible) {
    vocabulary_size_ = *vocabulary;
    return Status::Ok();
  }
  const int64_t max_token = MaxToken(storage_->tokens, size_, storage_->token_bytes);
  if (max_token >= std::numeric_limits<int>::max()) {
    return DataLoss("{}: got token {}, expected tokens below 2^31 - 1; the file is damaged", name_,
                    max_token);
  }
  vocabulary_size_ = vocabulary.value_or(static_cast<int>(max_token) + 1);
  if (max_token < vocabulary_size_) return Status::Ok();
  uint64_t position = 0;
  while ((*this)[position] < vocabulary_size_) ++position;
  return InvalidArgument(
      "{}: got token {} at position {}, expected tokens below the vocabulary of {}; "
      "enlarge the model's vocabulary or tokenize again",
      name_, (*this)[position], position, vocabulary_size_);
}

int64_t TokenDataset::operator[](uint64_t position) const {
  ZG_CHECK(position < size_, "token {} of {}", position, size_);
  const uint64_t index = begin_ + position;
  if (storage_->token_bytes == 1) return storage_->tokens[index];
  if (storage_->token_bytes == 2) {
    return reinterpret_cast<const uint16_t*>(storage_->tokens)[index];
  }
  return reinterpret_cast<const uint32_t*>(storage_->tokens)[index];
}

TokenDataset TokenDataset::Slice(uint64_t begin, uint64_t size) const {
  ZG_CHECK(begin <= size_ && size <= size_ - begin, "slice [{}, +{}) of {}", begin, size, size_);
  TokenDataset part = *this;
  part.begin_ += begin;
  part.size_ = size;
  return part;
}

StatusOr<TokenSplit> TokenDataset::Split(double validation_fraction) const {
  if (!(validation_fraction > 0.0 && validation_fraction < 1.0)) {
    return InvalidArgument("{}: got a validation fraction of {}, expected one between 0 and 1",
                           name_, validation_fraction);
  }
  const uint64_t validation =
      static_cast<uint64_t>(static_cast<double>(size_) * validation_fraction);
  if (validation == 0 || validation >= size_) {
    return InvalidArgument(
        "{}: got {} tokens, expected enough for a validation fraction of {}; use a "
        "longer file or another fraction",
        name_, size_, validation_fraction);
  }
  TokenSplit split{Slice(0, size_ - validation), Slice(size_ - validation, validation)};
  split.train.name_ += " (training part)";
  split.validation.name_ += " (validation part)";
  return split;
}

Status TokenDataset::CheckContext(int context) const {
  if (context < 1) return InvalidArgument("got a context of {}, expected 1 or more", context);
  if (size_ > static_cast<uint64_t>(context)) return Status::Ok();
  return InvalidArgument(
      "{}: got {} tokens, expected at least {} (context + 1); use a longer file or a "
      "shorter context",
      name_, size_, int64_t{context} + 1);
}

Status TokenDataset::FillBatch(uint64_t seed, uint64_t micro_batch_index, int batch, int context,
                               int64_t* x, int64_t* y) const {
  ZG_RETURN_IF_ERROR(CheckContext(context));
  ZG_CHECK(batch >= 0, "a batch of {}", batch);
  const RandomKey key = FoldIn(RandomKey{seed}, "token positions");
  const uint64_t num_positions = size_ - static_cast<uint64_t>(context);
  for (int b = 0; b < batch; ++b) {
    const uint64_t draw = micro_batch_index * static_cast<uint64_t>(batch) + b;
    const int64_t row = int64_t{b} * context;
    CopyWindow(UniformBelow(key, draw, num_positions), context, x + row, y + row);
  }
  return Status::Ok();
}

uint64_t TokenDataset::num_windows(int context) const {
  ZG_CHECK(context > 0, "a context of {}", context);
  return size_ == 0 ? 0 : (size_ - 1) / static_cast<uint64_t>(context);
}

Status TokenDataset::FillWindows(uint64_t first_window, int batch, int context, int64_t* x,
                                 int64_t* y) const {
  ZG_RETURN_IF_ERROR(CheckContext(context));
  ZG_CHECK(batch >= 0, "a batch of {}", batch);
  const uint64_t available = num_windows(context);
  if (first_window > available || static_cast<uint64_t>(batch) > available - first_window) {
    return InvalidArgument("{}: got windows {} to {}, expected windows below {}", name_,
                           first_window, first_window + batch, available);
  }
  for (int b = 0; b < batch; ++b) {
    const int64_t row = int64_t{b} * context;
    CopyWindow((first_window + b) * static_cast<uint64_t>(context), context, x + row, y + row);
  }
  return Status::Ok();
}

void TokenDataset::CopyWindow(uint64_t begin, int context, int64_t* x, int64_t* y) const {
  for (int t = 0; t < context; ++t) {
    x[t] = (*this)[begin + t];
    y[t] = (*this)[begin + t + 1];
  }
}

}  // namespace zg
