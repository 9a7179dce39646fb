// Frequencies of rotary as text, which is how its attribute holds them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace zg {

// Joined by commas, each with the digits that tell it from other doubles.
std::string FrequenciesText(const std::vector<double>& frequencies);

// None: the text is not a list of finite numbers.
std::optional<std::vector<double>> ParseFrequencies(const std::string& text);

}  // namespace zg
