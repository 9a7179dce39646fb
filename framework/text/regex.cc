#include "framework/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace zg {
namespace {

constexpr size_t kFirstStackBytes = 32 << 10;
constexpr size_t kMaxStackBytes = 64 << 20;

std::string MessageOf(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

}  // namespace

StatusOr<Regex> Regex::Compile(const std::string& pattern) { return Compile(pattern, false); }
StatusOr<Regex> Regex::Literal(const std::string& text) { return Compile(text, true); }

StatusOr<Regex> Regex::Compile(const std::string& pattern, bool is_literal) {
  int error = 0;
  PCRE2_SIZE position = 0;
  const uint32_t options = is_literal ? PCRE2_UTF | PCRE2_LITERAL : PCRE2_UTF | PCRE2_UCP;
  pcre2_code* const code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                                         pattern.size(), options, &error, &position, nullptr);
  if (code == nullptr) {
    return InvalidArgument("regex '{}': {} at byte {}", pattern, MessageOf(error), position);
  }
  Regex regex(std::shared_ptr<pcre2_code>(code, pcre2_code_free));
  uint32_t matches_empty = 0;
  pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty != 0 || (is_literal && pattern.empty())) {
    return InvalidArgument("regex '{}': matches the empty text, expected at least one character",
                           pattern);
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it, the interpreter finds the same
                                                // matches
  return regex;
}

struct RegexMatcher::State {
  explicit State(std::shared_ptr<pcre2_code> compiled)
      : code(std::move(compiled)),
        data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(kFirstStackBytes, kMaxStackBytes, nullptr)) {
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  State(const State&) = delete;
  ~State() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }

  std::shared_ptr<pcre2_code> code;
  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
};

RegexMatcher::RegexMatcher(const Regex& regex) : state_(std::make_unique<State>(regex.code_)) {}
RegexMatcher::RegexMatcher(RegexMatcher&& other) noexcept = default;
RegexMatcher::~RegexMatcher() = default;

bool RegexMatcher::Find(std::string_view text, size_t from, RegexMatch* match) {
  const int found =
      pcre2_match(state_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                  PCRE2_NO_UTF_CHECK, state_->data, state_->context);
  if (found >= 0) {
    const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(state_->data);
    *match = {bounds[0], bounds[1]};
    return true;
  }
  if (found != PCRE2_ERROR_NOMATCH) {
    status_ = InvalidArgument("regex: {} near byte {} of the text", MessageOf(found), from);
  }
  return false;
}

}  // namespace zg
