#include "framework/io/strict_json.h"

#include <set>
#include <vector>

#include "framework/io/mapped_file.h"
#include "framework/io/safetensors_header.h"

namespace zg {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 8;

// Watches the parser's events, because the finished value no longer shows duplicate keys.
class Watcher {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      if (depth >= kMaxDepth && status_.ok()) {
        status_ = DataLoss("values are nested more than {} deep", kMaxDepth);
      }
      keys_.emplace_back();
    }
    if (event == json::parse_event_t::object_end || event == json::parse_event_t::array_end) {
      keys_.pop_back();
    }
    if (event == json::parse_event_t::key && status_.ok()) {
      const std::string key = parsed.get<std::string>();
      if (!keys_.back().insert(key).second) {
        status_ = DataLoss("the key {} is there twice", QuoteForMessage(key));
      }
    }
    return status_.ok();
  }
  const Status& status() const { return status_; }

 private:
  std::vector<std::set<std::string>> keys_;  // of each open object or array
  Status status_;
};

}  // namespace

StatusOr<json> ParseStrictJson(const std::string& path, std::string_view text) {
  // The parser skips a byte order mark and treats a NUL as the end of its input.
  if (text.substr(0, 3) == "\xef\xbb\xbf" || text.find('\0') != text.npos) {
    return DataLoss("{}: got a byte order mark or a NUL byte, expected JSON", path);
  }
  Watcher watcher;
  try {
    json value = json::parse(text.begin(), text.end(), std::ref(watcher));
    if (!watcher.status().ok()) return watcher.status().WithContext(path);
    if (!value.is_object()) return DataLoss("{}: expected one JSON object", path);
    return value;
  } catch (const json::exception& error) {
    std::string_view reason = error.what();  // "[json.exception.parse_error.101] parse error at..."
    reason.remove_prefix(std::min(reason.find("] ") + 2, reason.size()));
    return DataLoss("{}: not valid JSON: {}", path, QuoteForMessage(reason));
  }
}

Status CheckJsonBytes(const std::string& path, uint64_t bytes) {
  constexpr uint64_t kMaxBytes = 100'000'000;
  if (bytes <= kMaxBytes) return Status::Ok();
  return DataLoss("{}: got {} bytes, expected at most {}", path, bytes, kMaxBytes);
}

StatusOr<json> ReadStrictJson(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  ZG_RETURN_IF_ERROR(CheckJsonBytes(path, file.size()));
  return ParseStrictJson(path, {reinterpret_cast<const char*>(file.data()), size_t{file.size()}});
}

}  // namespace zg
