#include "framework/io/train_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "framework/io/safetensors_header.h"
#include "framework/io/strict_json.h"

namespace zg {
namespace {

// A number >= 0 of the object.
StatusOr<int64_t> Count(const nlohmann::json& object, const std::string& path, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned() ||
      found->get<uint64_t>() > uint64_t{1} << 53) {
    return DataLoss("{}: \"{}\": expected a whole number from 0 to 2^53", path, key);
  }
  return static_cast<int64_t>(found->get<uint64_t>());
}

// The strings of an object, by name; none if the key is missing.
StatusOr<std::map<std::string, std::string>> Texts(const nlohmann::json& json,
                                                   const std::string& path, const char* key) {
  std::map<std::string, std::string> texts;
  const auto found = json.find(key);
  if (found == json.end()) return texts;
  if (!found->is_object()) return DataLoss("{}: \"{}\": expected an object of strings", path, key);
  for (const auto& [name, value] : found->items()) {
    if (!value.is_string()) {
      return DataLoss("{}: \"{}\", {}: expected a string", path, key, QuoteForMessage(name));
    }
    texts[name] = value.get<std::string>();
  }
  return texts;
}

}  // namespace

std::string TrainStateAsJson(const TrainState& state) {
  nlohmann::ordered_json json;
  json["format_version"] = kCheckpointFormatVersion;
  json["model"] = state.model;
  json["step"] = state.step;
  json["updates"] = state.updates;
  if (!state.skipped_steps.empty()) json["skipped_steps"] = state.skipped_steps;
  json["settings"] = state.settings;
  if (!state.arithmetic.empty()) json["arithmetic"] = state.arithmetic;
  if (!state.notes.empty()) json["notes"] = state.notes;
  // Names and values of settings need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

StatusOr<TrainState> ReadTrainState(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const nlohmann::json json, ReadStrictJson(path));
  ZG_ASSIGN_OR_RETURN(const int64_t version, Count(json, path, "format_version"));
  if (version != kCheckpointFormatVersion) {
    return FailedPrecondition(
        "{}: the checkpoint has format version {}, this program reads {}; use the program that "
        "wrote it, or a newer one",
        path, version, kCheckpointFormatVersion);
  }
  const std::set<std::string> known = {"format_version", "model",    "step",       "updates",
                                       "skipped_steps",  "settings", "arithmetic", "notes"};
  for (const auto& [key, value] : json.items()) {
    if (known.count(key) == 0) {
      return DataLoss("{}: the key {} is not known", path, QuoteForMessage(key));
    }
  }
  TrainState state;
  ZG_ASSIGN_OR_RETURN(state.step, Count(json, path, "step"));
  ZG_ASSIGN_OR_RETURN(state.updates, Count(json, path, "updates"));
  const auto model = json.find("model");
  if (model == json.end() || !model->is_string()) {
    return DataLoss("{}: \"model\": expected a string", path);
  }
  state.model = model->get<std::string>();
  if (json.find("settings") == json.end()) {
    return DataLoss("{}: \"settings\": expected an object of strings", path);
  }
  ZG_ASSIGN_OR_RETURN(state.settings, Texts(json, path, "settings"));
  ZG_ASSIGN_OR_RETURN(state.notes, Texts(json, path, "notes"));
  const auto arithmetic = json.find("arithmetic");
  if (arithmetic != json.end()) {
    if (!arithmetic->is_string()) return DataLoss("{}: \"arithmetic\": expected a string", path);
    state.arithmetic = arithmetic->get<std::string>();
  }
  const auto skipped = json.find("skipped_steps");
  if (skipped != json.end()) {
    if (!skipped->is_object()) {
      return DataLoss("{}: \"skipped_steps\": expected an object of numbers", path);
    }
    for (const auto& [group, count] : skipped->items()) {
      ZG_ASSIGN_OR_RETURN(state.skipped_steps[group], Count(*skipped, path, group.c_str()));
    }
  }
  return state;
}

namespace {

// "b: f32[4], a: i64[4]" in the order of the names. Checkpoints of earlier versions list inputs in the
// order in which their program used them.
std::string SortedInputs(std::string_view text) {
  constexpr std::string_view kBetween = ", ";  // shapes have commas without a space
  std::set<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(kBetween), text.size());
    parts.emplace(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + kBetween.size()));
  }
  return fmt::format("{}", fmt::join(parts, kBetween));
}

}  // namespace

Status CheckSameSettings(const std::string& path, const std::map<std::string, std::string>& then,
                         const std::map<std::string, std::string>& now) {
  std::set<std::string> names;
  for (const auto& [name, value] : then) names.insert(name);
  for (const auto& [name, value] : now) names.insert(name);
  std::string differences;
  const auto value_in = [](const std::map<std::string, std::string>& settings,
                           const std::string& name) {
    const auto found = settings.find(name);
    if (found == settings.end()) return std::string("nothing");
    return QuoteForMessage(name == "inputs" ? SortedInputs(found->second) : found->second);
  };
  for (const std::string& name : names) {
    const std::string before = value_in(then, name);
    const std::string after = value_in(now, name);
    if (before == after) continue;
    differences += fmt::format("\n  {}: got {}, expected {}", name, after, before);
  }
  if (differences.empty()) return Status::Ok();
  return InvalidArgument(
      "{}: the run would not go on as it began; what differs from the checkpoint:{}\n"
      "  hint: give the same as then, or start anew from parameters alone with `init`",
      path, differences);
}

}  // namespace zg
