#include "framework/io/safetensors_header.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace zg {
namespace {

using Json = nlohmann::json;

// Receives the parser's events. A DOM would not work, because it silently drops duplicate keys.
// Every level of the header is a state, so nesting cannot get deeper than the format allows.
class HeaderHandler {
 public:
  // The first error, without the file's name.
  const std::optional<Status>& error() const { return error_; }
  SafetensorsHeader TakeHeader() && { return std::move(header_); }

  bool null() { return Reject("null"); }
  bool boolean(bool value) { return Reject(value ? "true" : "false"); }
  bool number_integer(Json::number_integer_t value) {
    return Reject(fmt::format("the negative number {}", value));
  }
  bool number_float(Json::number_float_t, const std::string& text) {
    return Reject(fmt::format("the number {}", text.substr(0, 40)));
  }
  bool binary(Json::binary_t&) { return Reject("binary data"); }

  bool number_unsigned(Json::number_unsigned_t value) {
    if (state_ == State::kShape) {
      if (value > std::numeric_limits<int64_t>::max()) return Reject(fmt::to_string(value));
      entry_.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (state_ == State::kOffsets && offsets_.size() < 2) {
      offsets_.push_back(value);
      return true;
    }
    return Reject(fmt::to_string(value));
  }

  bool string(std::string& value) {
    if (state_ == State::kMetadata) {
      header_.metadata[key_] = std::move(value);
      return true;
    }
    if (state_ == State::kRecord && key_ == "dtype") {
      const std::optional<SafetensorsDType> dtype = ParseSafetensorsDType(value);
      if (!dtype) return Fail("got dtype {}, expected one such as \"F32\"", QuoteForMessage(value));
      entry_.dtype = *dtype;
      return true;
    }
    return Reject(fmt::format("the string {}", QuoteForMessage(value)));
  }

  bool start_object(size_t) {
    if (state_ == State::kStart) {
      state_ = State::kTop;
      return true;
    }
    if (state_ != State::kTop) return Reject("an object");
    if (key_ == kSafetensorsMetadataKey) {
      state_ = State::kMetadata;
      return true;
    }
    state_ = State::kRecord;
    entry_ = SafetensorsEntry();
    entry_.name = key_;
    offsets_.clear();
    fields_.clear();
    return true;
  }

  bool key(std::string& value) {
    key_ = std::move(value);
    if (state_ == State::kRecord) {
      if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets") {
        return Fail("got the field {}, expected only dtype, shape and data_offsets",
                    QuoteForMessage(key_));
      }
      if (std::find(fields_.begin(), fields_.end(), key_) != fields_.end()) {
        return Fail("the field {} is there twice", QuoteForMessage(key_));
      }
      fields_.push_back(key_);
      return true;
    }
    if (state_ == State::kMetadata) {
      if (header_.metadata.count(key_) == 0) return true;
      return Fail("the key {} is there twice", QuoteForMessage(key_));
    }
    if (names_.insert(key_).second) return true;
    return Fail("the name is there twice");
  }

  bool end_object() {
    if (state_ == State::kRecord && !FinishRecord()) return false;
    state_ = state_ == State::kTop ? State::kDone : State::kTop;
    return true;
  }

  bool start_array(size_t) {
    if (state_ == State::kRecord && key_ == "shape") {
      state_ = State::kShape;
      return true;
    }
    if (state_ == State::kRecord && key_ == "data_offsets") {
      state_ = State::kOffsets;
      return true;
    }
    return Reject("an array");
  }

  bool end_array() {
    if (state_ == State::kOffsets && offsets_.size() != 2) {
      return Fail("got {} data_offsets, expected 2: begin and end", offsets_.size());
    }
    state_ = State::kRecord;
    return true;
  }

  template <typename Error>
  bool parse_error(size_t position, const std::string&, const Error& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..."
    std::string_view text = error.what();
    text.remove_prefix(std::min(text.find("] ") + 2, text.size()));
    error_ = DataLoss("the header is not valid JSON (byte {}): {}", position, text.substr(0, 200));
    return false;
  }

 private:
  enum class State { kStart, kTop, kMetadata, kRecord, kShape, kOffsets, kDone };

  template <typename... Args>
  bool Fail(fmt::format_string<Args...> format, Args&&... args) {
    Status status = DataLoss(format, std::forward<Args>(args)...);
    if (state_ == State::kMetadata || (state_ == State::kTop && key_ == kSafetensorsMetadataKey)) {
      status = status.WithContext(kSafetensorsMetadataKey);
    } else if (state_ != State::kStart) {
      const std::string& name = state_ == State::kTop ? key_ : entry_.name;
      status = status.WithContext("tensor " + QuoteForMessage(name));
    }
    error_ = std::move(status);
    return false;
  }

  // `got` is a value that is not allowed here.
  bool Reject(std::string_view got) {
    switch (state_) {
      case State::kStart:
        return Fail("the header: got {}, expected an object", got);
      case State::kTop:
        return Fail("got {}, expected an object", got);
      case State::kMetadata:
        return Fail("the key {}: got {}, expected a string", QuoteForMessage(key_), got);
      case State::kRecord:
        return Fail("{}: got {}, expected {}", key_, got,
                    key_ == "dtype" ? "a string" : "an array of integers");
      case State::kShape:
        return Fail("shape: got {}, expected integers from 0 to 2^63 - 1", got);
      case State::kOffsets:
      case State::kDone:
        break;
    }
    return Fail("data_offsets: got {}, expected two integers from 0 to 2^64 - 1", got);
  }

  bool FinishRecord() {
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (std::find(fields_.begin(), fields_.end(), field) == fields_.end()) {
        return Fail("the field \"{}\" is missing", field);
      }
    }
    entry_.begin_byte = offsets_[0];
    entry_.end_byte = offsets_[1];
    header_.entries.push_back(std::move(entry_));
    return true;
  }

  State state_ = State::kStart;
  std::string key_;
  SafetensorsEntry entry_;
  std::vector<uint64_t> offsets_;
  std::vector<std::string> fields_;
  std::unordered_set<std::string> names_;
  SafetensorsHeader header_;
  std::optional<Status> error_;
};

Status CheckSize(const SafetensorsEntry& entry) {
  if (entry.begin_byte > entry.end_byte) {
    return DataLoss("got data_offsets [{}, {}], expected begin <= end", entry.begin_byte,
                    entry.end_byte);
  }
  ZG_ASSIGN_OR_RETURN(const uint64_t expected, SafetensorsByteSize(entry.dtype, entry.shape));
  if (entry.size_bytes() == expected) return Status::Ok();
  return DataLoss("got {} bytes (data_offsets [{}, {}]), expected {} for {} of shape [{}]",
                  entry.size_bytes(), entry.begin_byte, entry.end_byte, expected,
                  SafetensorsDTypeName(entry.dtype), fmt::join(entry.shape, ", "));
}

// Every byte of the data belongs to exactly one tensor. `entries` are sorted by their offsets.
Status CheckCoverage(const std::vector<SafetensorsEntry>& entries, uint64_t data_bytes) {
  uint64_t covered = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin_byte != covered) {
      return DataLoss("tensor {}: its data begins at byte {}, expected {} ({})",
                      QuoteForMessage(entry.name), entry.begin_byte, covered,
                      entry.begin_byte > covered ? "no tensor owns the bytes before it"
                                                 : "it overlaps the tensor before it");
    }
    if (entry.end_byte > data_bytes) {
      return DataLoss(
          "tensor {}: its data ends at byte {}, but the file has only {} bytes of data; "
          "it is truncated",
          QuoteForMessage(entry.name), entry.end_byte, data_bytes);
    }
    covered = entry.end_byte;
  }
  if (covered == data_bytes) return Status::Ok();
  if (entries.empty()) return DataLoss("got {} bytes of data without a tensor", data_bytes);
  return DataLoss("tensor {}: the last data ends at byte {}, but the file has {} bytes of data",
                  QuoteForMessage(entries.back().name), covered, data_bytes);
}

StatusOr<SafetensorsHeader> Parse(std::string_view json, uint64_t data_bytes) {
  // The parser skips a byte order mark and treats a NUL as the end of its input.
  if (json.substr(0, 3) == "\xef\xbb\xbf") {
    return DataLoss("the header begins with a byte order mark, expected '{{'");
  }
  if (const size_t position = json.find('\0'); position != json.npos) {
    return DataLoss("the header has a NUL byte at {}, expected JSON padded with spaces", position);
  }
  HeaderHandler handler;
  const bool parsed = Json::sax_parse(json.begin(), json.end(), &handler);
  if (handler.error()) return *handler.error();
  ZG_CHECK(parsed, "the parser failed without an error");
  SafetensorsHeader header = std::move(handler).TakeHeader();
  for (const SafetensorsEntry& entry : header.entries) {
    ZG_RETURN_IF_ERROR(CheckSize(entry).WithContext("tensor " + QuoteForMessage(entry.name)));
  }
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tie(a.begin_byte, a.end_byte, a.name) <
                     std::tie(b.begin_byte, b.end_byte, b.name);
            });
  ZG_RETURN_IF_ERROR(CheckCoverage(header.entries, data_bytes));
  return header;
}

}  // namespace

StatusOr<SafetensorsHeader> ParseSafetensorsHeader(const std::string& path, std::string_view json,
                                                   uint64_t data_bytes) {
  StatusOr<SafetensorsHeader> header = Parse(json, data_bytes);
  if (!header.ok()) return header.status().WithContext(path);
  return header;
}

StatusOr<uint64_t> SafetensorsByteSize(SafetensorsDType dtype, const std::vector<int64_t>& shape) {
  uint64_t bits = static_cast<uint64_t>(BitsOf(dtype));
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return InvalidArgument("got a dim of {}, expected 0 or more", dim);
    if (dim == 0) empty = true;
    if (__builtin_mul_overflow(bits, std::max<uint64_t>(dim, 1), &bits)) {
      return DataLoss("the size of {}[{}] overflows 64 bits", SafetensorsDTypeName(dtype),
                      fmt::join(shape, ", "));
    }
  }
  if (empty) return uint64_t{0};
  if (bits % 8 != 0) {
    return DataLoss("{}[{}] has {} bits, expected whole bytes", SafetensorsDTypeName(dtype),
                    fmt::join(shape, ", "), bits);
  }
  return bits / 8;
}

std::string QuoteForMessage(std::string_view text) {
  constexpr size_t kMaxLength = 200;
  std::string quoted = "\"";
  for (const char c : text.substr(0, kMaxLength)) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  quoted += text.size() > kMaxLength ? "\"..." : "\"";
  return quoted;
}

}  // namespace zg
