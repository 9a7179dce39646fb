#include "framework/kernels/gemm_choices.h"

#include <utility>

#include "framework/io/sha256.h"

namespace zg {

const GemmChoice* GemmChoices::Find(const std::string& product, Measure measure) {
  const auto found = choices_.find(product);
  if (found == choices_.end()) {
    missing_.emplace(product, std::move(measure));
    return nullptr;
  }
  found_.insert(product);
  return &found->second;
}

void GemmChoices::Add(const std::map<std::string, GemmChoice>& choices) {
  for (const auto& [product, choice] : choices) {
    choices_.emplace(product, choice);
    missing_.erase(product);
  }
}

std::string GemmChoices::FoundDigest() const {
  std::string text;
  for (const std::string& product : found_) {
    text += product + ": " + choices_.at(product).algorithm + "\n";
  }
  return Sha256Hex(text.data(), text.size()).substr(0, 12);
}

}  // namespace zg
