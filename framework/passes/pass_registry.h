// PassRegistry: passes by name, for tools and tests that take them as text. Each package lists its
// passes in a registration function (register_passes.h).
//
//   PassRegistry registry;
//   RegisterPasses(registry);
//   ZG_ASSIGN_OR_RETURN(PassList passes, ParsePasses("infer-sbp, bucketing(bytes=64)", registry));
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/attribute.h"
#include "framework/passes/pass.h"

namespace zg {

struct PassDef {
  std::string name;
  std::string doc;                        // one line
  std::vector<ir::AttributeDef> options;  // options in parentheses after the name
  // Called with all options set. Returns an error for an invalid value.
  std::function<StatusOr<std::unique_ptr<Pass>>(const ir::Attributes&)> make;
};

// A pass without options.
template <typename PassType>
PassDef SimplePass(std::string doc) {
  const auto make = [](const ir::Attributes&) -> StatusOr<std::unique_ptr<Pass>> {
    return std::unique_ptr<Pass>(std::make_unique<PassType>());
  };
  return {std::string(PassType().name()), std::move(doc), {}, make};
}

class PassRegistry {
 public:
  void Register(PassDef pass);                       // a second pass of the same name is a CHECK
                                                     // failure
  const PassDef* Find(std::string_view name) const;  // null if there is none
  std::vector<const PassDef*> All() const;           // in name order

 private:
  std::map<std::string, PassDef, std::less<>> passes_;
};

using PassList = std::vector<std::unique_ptr<Pass>>;

// Parses passes separated by spaces or commas, each with its options, `a(stage=2), b`. Errors begin
// with `source`: a name that is not registered, options that the pass does not have.
StatusOr<PassList> ParsePasses(std::string_view text, const PassRegistry& registry,
                               std::string_view source = "passes");

}  // namespace zg
