#include "framework/passes/pass_registry.h"

#include <fmt/format.h>

#include "framework/base/check.h"
#include "framework/ir/attribute_parser.h"

namespace zg {
namespace {

StatusOr<std::unique_ptr<Pass>> ParsePass(ir::TextCursor* cursor, const PassRegistry& registry) {
  const size_t position = cursor->position();
  ZG_ASSIGN_OR_RETURN(const std::string name, cursor->Word("a pass", "-"));
  const PassDef* def = registry.Find(name);
  if (def == nullptr) {
    std::vector<std::string_view> names;
    for (const PassDef* known : registry.All()) names.push_back(known->name);
    return cursor->ErrorAt(position, InvalidArgument("unknown pass '{}', expected one of {}", name,
                                                     fmt::join(names, ", ")));
  }
  ZG_ASSIGN_OR_RETURN(ir::Attributes options, ir::ParseAttributes(cursor));
  const Status complete = ir::CompleteAttributes(def->options, &options).WithContext(name);
  if (!complete.ok()) return cursor->ErrorAt(position, complete);
  StatusOr<std::unique_ptr<Pass>> pass = def->make(options);
  if (!pass.ok()) return cursor->ErrorAt(position, pass.status().WithContext(name));
  return pass;
}

}  // namespace

void PassRegistry::Register(PassDef pass) {
  ZG_CHECK(pass.make != nullptr, "pass {} has no factory", pass.name);
  const std::string name = pass.name;
  ZG_CHECK(passes_.emplace(name, std::move(pass)).second, "pass {} is registered twice", name);
}

const PassDef* PassRegistry::Find(std::string_view name) const {
  const auto found = passes_.find(name);
  return found == passes_.end() ? nullptr : &found->second;
}

std::vector<const PassDef*> PassRegistry::All() const {
  std::vector<const PassDef*> all;
  for (const auto& [name, pass] : passes_) all.push_back(&pass);
  return all;
}

StatusOr<PassList> ParsePasses(std::string_view text, const PassRegistry& registry,
                               std::string_view source) {
  ir::TextCursor cursor(text, std::string(source));
  PassList passes;
  while (!cursor.AtEnd()) {
    if (!passes.empty()) cursor.Consume(",");
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Pass> pass, ParsePass(&cursor, registry));
    passes.push_back(std::move(pass));
  }
  return passes;
}

}  // namespace zg
