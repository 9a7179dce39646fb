#include "framework/passes/pass_manager.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "framework/base/check.h"
#include "framework/ir/printer.h"
#include "framework/ir/verifier.h"

namespace zg {

Status PassManager::Run(ir::Graph& graph) {
  records_.clear();
  ZG_RETURN_IF_ERROR(CheckDisabled());
  ZG_RETURN_IF_ERROR(ir::Verify(graph).WithContext("before the first pass"));
  const bool prints = options_.checks_reports || !options_.dump_directory.empty();
  std::string text = prints ? ir::Print(graph) : "";
  ZG_RETURN_IF_ERROR(Dump("00_input.graph", text));
  ir::VerifyOptions rules;
  for (size_t i = 0; i < passes_.size(); ++i) {
    const std::string name(passes_[i]->name());
    if (options_.disabled.count(name) != 0) continue;
    const auto start = std::chrono::steady_clock::now();
    StatusOr<bool> changed = passes_[i]->Run(graph);
    const std::chrono::duration<double, std::milli> run_ms =
        std::chrono::steady_clock::now() - start;
    if (!changed.ok()) return changed.status().WithContext(name);
    records_.push_back({name, *changed, run_ms.count()});
    spdlog::debug("pass {}: {:.2f} ms{}", name, run_ms.count(), *changed ? "" : ", no change");

    std::string text_after = prints ? ir::Print(graph) : "";
    ZG_RETURN_IF_ERROR(Dump(fmt::format("{:02}_after_{}.graph", i + 1, name), text_after));
    const bool has_new_rules = name == options_.inserts_collectives;
    rules.collectives_inserted = rules.collectives_inserted || has_new_rules;
    const bool has_changed = options_.checks_reports ? text_after != text : *changed;
    if (has_changed || has_new_rules) {  // an unchanged graph was verified before
      ZG_RETURN_IF_ERROR(ir::Verify(graph, rules).WithContext("after " + name));
    }
    ZG_CHECK(*changed == has_changed, "{} said that it {} the graph, but it {}", name,
             *changed ? "changed" : "did not change", *changed ? "did not" : "did");
    text = std::move(text_after);
  }
  return Status::Ok();
}

Status PassManager::CheckDisabled() const {
  std::vector<std::string_view> names;
  for (const auto& pass : passes_) names.push_back(pass->name());
  for (const std::string& disabled : options_.disabled) {
    if (std::find(names.begin(), names.end(), disabled) != names.end()) continue;
    return InvalidArgument("cannot disable pass '{}': expected one of {}", disabled,
                           fmt::join(names, ", "));
  }
  return Status::Ok();
}

Status PassManager::Dump(const std::string& file_name, const std::string& text) const {
  if (options_.dump_directory.empty()) return Status::Ok();
  const std::filesystem::path path = std::filesystem::path(options_.dump_directory) / file_name;
  std::error_code ignored;  // writing the file reports the error
  std::filesystem::create_directories(path.parent_path(), ignored);
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return FailedPrecondition("cannot write the dump {}", path.string());
  return Status::Ok();
}

}  // namespace zg
