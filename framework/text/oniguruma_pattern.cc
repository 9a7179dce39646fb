#include "framework/text/oniguruma_pattern.h"

#include <cctype>

namespace zg {
namespace {

constexpr std::string_view kGroups[] = {"(?:", "(?i:", "(?=", "(?!", "(?>"};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  StatusOr<std::string> Run() {
    while (at_ < pattern_.size()) {
      const char next = pattern_[at_];
      if (next == '\\') {
        ZG_RETURN_IF_ERROR(Escape());
      } else if (is_in_class_) {
        ZG_RETURN_IF_ERROR(InClass());
      } else if (next == '[') {
        ZG_RETURN_IF_ERROR(BeginClass());
      } else if (next == '(') {
        ZG_RETURN_IF_ERROR(Group());
      } else if (next == '^' || next == '$' || Begins("}+") || Begins("{,")) {
        return Unsupported(next == '^' || next == '$' ? 1 : 2);
      } else {
        Copy(1);
      }
    }
    return result_;
  }

 private:
  bool Begins(std::string_view text) const { return pattern_.substr(at_, text.size()) == text; }

  void Copy(size_t bytes) {
    result_ += pattern_.substr(at_, bytes);
    at_ += bytes;
  }

  void Replace(size_t bytes, std::string_view by) {
    result_ += by;
    at_ += bytes;
  }

  Status Unsupported(size_t bytes) const {
    return InvalidArgument(
        "regex '{}': got '{}' at byte {}, expected what means the same to Oniguruma and PCRE2",
        pattern_, pattern_.substr(at_, bytes), at_);
  }

  Status Escape() {
    const char letter = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    switch (letter) {
      // PCRE2's own \s includes U+180E, which is not white space since Unicode 6.3.
      case 's':
        Replace(2, "\\p{White_Space}");
        return Status::Ok();
      case 'S':
        Replace(2, "\\P{White_Space}");
        return Status::Ok();
      case 'd':
        Replace(2, "\\p{Nd}");
        return Status::Ok();
      case 'D':
        Replace(2, "\\P{Nd}");
        return Status::Ok();
      case 'n':
      case 'r':
      case 't':
        Copy(2);
        return Status::Ok();
      case 'p':
      case 'P':
      case 'x':
        return Braces();
      case 'u':
        return FourDigits();
      default:
        break;
    }
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x80 || std::ispunct(byte) == 0) return Unsupported(2);
    Copy(2);
    return Status::Ok();
  }

  // \p{L}, \P{Lu}, \x{3000}
  Status Braces() {
    const size_t end = pattern_.find('}', at_);
    if (at_ + 2 >= pattern_.size() || pattern_[at_ + 2] != '{' || end == pattern_.npos) {
      return Unsupported(2);
    }
    Copy(end + 1 - at_);
    return Status::Ok();
  }

  Status FourDigits() {
    const std::string_view digits = pattern_.substr(std::min(at_ + 2, pattern_.size()), 4);
    if (digits.size() < 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) {
      return Unsupported(2);
    }
    Replace(6, "\\x{" + std::string(digits) + "}");
    return Status::Ok();
  }

  Status BeginClass() {
    Copy(Begins("[^") ? 2 : 1);
    is_in_class_ = true;
    return Begins("]") ? Unsupported(1) : Status::Ok();
  }

  Status InClass() {
    if (Begins("[") || Begins("&&")) return Unsupported(Begins("[") ? 1 : 2);
    is_in_class_ = !Begins("]");
    Copy(1);
    return Status::Ok();
  }

  Status Group() {
    for (const std::string_view group : kGroups) {
      if (!Begins(group)) continue;
      Copy(group.size());
      return Status::Ok();
    }
    if (Begins("(?") || Begins("(*")) return Unsupported(3);
    Copy(1);
    return Status::Ok();
  }

  std::string_view pattern_;
  size_t at_ = 0;
  bool is_in_class_ = false;
  std::string result_;
};

}  // namespace

StatusOr<std::string> PcreOfOniguruma(std::string_view pattern) {
  return Translator(pattern).Run();
}

}  // namespace zg
