// ConfigFile: the config.json of a transformers model, read for its sizes and checked for settings
// that our model would compute differently. All problems are reported together.
//
//   ZG_ASSIGN_OR_RETURN(ConfigFile file, ConfigFile::Open("Llama-3-8B"));
//   config.layers = file.Size("num_hidden_layers");
//   file.Expect("hidden_act", "silu", "silu");
//   ZG_RETURN_IF_ERROR(file.status());
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"

namespace zg::models {

class ConfigFile {
 public:
  using Json = nlohmann::json;

  static StatusOr<ConfigFile> Open(const std::string& directory);

  // An integer from 1 to `most`. Without `by_default` the file must have it.
  static constexpr int64_t kMostSize = 1 << 24;
  static constexpr int64_t kMostLayers = 10000;
  int64_t Size(const std::string& key, std::optional<int64_t> by_default = std::nullopt,
               int64_t most = kMostSize);
  double Number(const std::string& key, double by_default);
  bool Flag(const std::string& key, bool by_default);
  // Reports a problem unless the key has this value; a missing key has the default of transformers.
  void Expect(const std::string& key, const Json& by_default, const Json& expected);
  // Also if it is null.
  bool Has(const std::string& key) const { return json_.contains(key); }
  // Null if there is none, or if it is null.
  const Json* Find(const std::string& key) const;

  template <typename... Args>
  void AddProblem(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  // An error with all problems, if there are any.
  Status status() const;

 private:
  ConfigFile(std::string path, Json json) : path_(std::move(path)), json_(std::move(json)) {}

  std::string path_;
  Json json_;
  std::vector<std::string> problems_;
};

}  // namespace zg::models
