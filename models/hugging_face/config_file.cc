#include "models/hugging_face/config_file.h"

#include "framework/io/strict_json.h"

namespace zg::models {

StatusOr<ConfigFile> ConfigFile::Open(const std::string& directory) {
  const std::string path = directory + "/config.json";
  ZG_ASSIGN_OR_RETURN(Json json, ReadStrictJson(path));
  return ConfigFile(path, std::move(json));
}

const ConfigFile::Json* ConfigFile::Find(const std::string& key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

int64_t ConfigFile::Size(const std::string& key, std::optional<int64_t> by_default, int64_t most) {
  const Json* const got = Find(key);
  if (got == nullptr && by_default.has_value()) return *by_default;
  const bool is_size = got != nullptr && got->is_number_integer() && got->get<int64_t>() >= 1;
  if (is_size && got->get<int64_t>() <= most) return got->get<int64_t>();
  if (is_size) {
    AddProblem("{}: got {}, expected at most {}", key, got->dump(), most);
  } else {
    AddProblem("{}: got {}, expected a whole number of at least 1", key,
               got == nullptr ? "nothing" : got->dump());
  }
  return 1;
}

double ConfigFile::Number(const std::string& key, double by_default) {
  const Json* const got = Find(key);
  if (got == nullptr) return by_default;
  if (got->is_number() && got->get<double>() >= 0.0) return got->get<double>();
  AddProblem("{}: got {}, expected a number of at least 0", key, got->dump());
  return by_default;
}

bool ConfigFile::Flag(const std::string& key, bool by_default) {
  const Json* const got = Find(key);
  if (got == nullptr) return by_default;
  if (got->is_boolean()) return got->get<bool>();
  AddProblem("{}: got {}, expected true or false", key, got->dump());
  return by_default;
}

void ConfigFile::Expect(const std::string& key, const Json& by_default, const Json& expected) {
  const Json* const found = Find(key);
  const Json got = found == nullptr ? by_default : *found;
  if (got != expected) AddProblem("{}: got {}, expected {}", key, got.dump(), expected.dump());
}

Status ConfigFile::status() const {
  if (problems_.empty()) return Status::Ok();
  return InvalidArgument("{}: is not of a model that ours can be:\n  {}", path_,
                         fmt::join(problems_, "\n  "));
}

}  // namespace zg::models
