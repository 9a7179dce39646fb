#include "framework/text/pre_tokenizer.h"

namespace zg {

WordSplitter::WordSplitter(const PreTokenizer& pre_tokenizer) {
  for (const Regex& split : pre_tokenizer.splits) matchers_.emplace_back(split);
}

Status WordSplitter::Split(std::string_view text, const Visit& visit) {
  SplitFrom(0, text, visit);
  for (const RegexMatcher& matcher : matchers_) ZG_RETURN_IF_ERROR(matcher.status());
  return Status::Ok();
}

void WordSplitter::SplitFrom(size_t stage, std::string_view text, const Visit& visit) {
  if (text.empty()) return;
  if (stage == matchers_.size()) {
    visit(text);
    return;
  }
  size_t done = 0;
  RegexMatch match;
  while (done < text.size() && matchers_[stage].Find(text, done, &match)) {
    SplitFrom(stage + 1, text.substr(done, match.begin - done), visit);
    SplitFrom(stage + 1, text.substr(match.begin, match.end - match.begin), visit);
    done = match.end;
  }
  SplitFrom(stage + 1, text.substr(done), visit);
}

}  // namespace zg
