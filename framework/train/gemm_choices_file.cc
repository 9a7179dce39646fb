#include "framework/train/gemm_choices_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "framework/io/atomic_file.h"
#include "framework/io/mapped_file.h"
#include "framework/io/sha256.h"
#include "framework/io/strict_json.h"

namespace zg {
namespace {

using nlohmann::json;

constexpr int kFormatVersion = 1;
constexpr char kHint[] = "remove what is damaged, or the file: what it lacks is measured again";

std::string CheckOf(const std::string& device, const std::string& product,
                    const std::string& algorithm) {
  const std::string text = device + "\n" + product + "\n" + algorithm + "\n";
  return Sha256Hex(text.data(), text.size()).substr(0, 8);
}

StatusOr<GemmChoice> ParseChoice(const json& entry, const std::string& device,
                                 const std::string& product) {
  if (!entry.is_object() || entry.size() != 4) return DataLoss("expected an object of 4 values");
  for (const char* const key : {"algorithm", "check"}) {
    if (entry.contains(key) && entry[key].is_string()) continue;
    return DataLoss("\"{}\": expected a string", key);
  }
  for (const char* const key : {"us", "first_us"}) {
    if (entry.contains(key) && entry[key].is_number()) continue;
    return DataLoss("\"{}\": expected a number", key);
  }
  const GemmChoice choice = {entry["algorithm"].get<std::string>(), entry["us"].get<double>(),
                             entry["first_us"].get<double>()};
  const std::string expected = CheckOf(device, product, choice.algorithm);
  if (entry["check"] == expected) return choice;
  return DataLoss("\"check\": got \"{}\", expected \"{}\" of this algorithm",
                  entry["check"].get<std::string>(), expected);
}

}  // namespace

std::string GemmChoicesAsJson(const ChoicesOfDevices& choices) {
  json of_devices = json::object();
  for (const auto& [device, products] : choices) {
    for (const auto& [product, choice] : products) {
      of_devices[device][product] = {{"algorithm", choice.algorithm},
                                     {"check", CheckOf(device, product, choice.algorithm)},
                                     {"us", choice.us},
                                     {"first_us", choice.first_us}};
    }
  }
  const json file = {{"format_version", kFormatVersion}, {"choices", std::move(of_devices)}};
  return file.dump(1) + "\n";
}

StatusOr<ChoicesOfDevices> ParseGemmChoices(const std::string& path, std::string_view text) {
  const StatusOr<json> file = ParseStrictJson(path, text);
  if (!file.ok()) return DataLoss("{}; {}", file.status().message(), kHint);
  if (!file->contains("format_version") || (*file)["format_version"] != kFormatVersion) {
    return DataLoss("{}: \"format_version\": got {}, expected {}; {}", path,
                    file->contains("format_version") ? (*file)["format_version"].dump() : "nothing",
                    kFormatVersion, kHint);
  }
  if (file->size() != 2 || !file->contains("choices") || !(*file)["choices"].is_object()) {
    return DataLoss(
        "{}: expected the object \"choices\" beside \"format_version\", and no more; {}", path,
        kHint);
  }
  ChoicesOfDevices choices;
  for (const auto& [device, products] : (*file)["choices"].items()) {
    if (!products.is_object()) {
      return DataLoss("{}: \"{}\": expected an object of products; {}", path, device, kHint);
    }
    for (const auto& [product, entry] : products.items()) {
      const StatusOr<GemmChoice> choice = ParseChoice(entry, device, product);
      if (!choice.ok()) {
        return DataLoss("{}: \"{}\": \"{}\": {}; {}", path, device, product,
                        choice.status().message(), kHint);
      }
      choices[device][product] = *choice;
    }
  }
  return choices;
}

StatusOr<ChoicesOfDevices> ReadGemmChoices(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return ChoicesOfDevices();
  ZG_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ParseGemmChoices(path, {reinterpret_cast<const char*>(file.data()), file.size()});
}

Status AddToGemmChoices(const std::string& path, const std::string& device,
                        const ChoicesOfProducts& choices) {
  ZG_ASSIGN_OR_RETURN(ChoicesOfDevices all, ReadGemmChoices(path));
  for (const auto& [product, choice] : choices) all[device][product] = choice;
  return WriteFileAtomically(path, GemmChoicesAsJson(all));
}

}  // namespace zg
