#include "tests/testing/random_attributes.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace zg::testing {
namespace {

bool IsBool(const ir::AttributeDef& def) { return std::holds_alternative<bool>(def.example); }

// Lists of dims and their sizes: of tensors of two or three dims, or of images, each picked on its
// own.
std::vector<int64_t> RandomInts(const std::string& name, Random* random) {
  using Ints = std::vector<int64_t>;
  if (name == "kernel" || name == "stride") return random->Pick<Ints>({{2, 2}, {1, 1}, {1, 3}});
  if (name == "padding") return random->Pick<Ints>({{1, 1}, {0, 1}});
  if (name == "dilation") return {2, 1};
  if (name == "size") return random->Pick<Ints>({{4, 3}, {3, 2}, {5, 4}, {2, 3}});
  if (name == "dims") return random->Pick<Ints>({{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}});
  if (name == "order") {
    return random->Pick<Ints>({{1, 0}, {0, 2, 1}, {1, 0, 2}, {2, 0, 1}, {2, 1, 0}});
  }
  if (name == "from" || name == "to") return random->Pick<Ints>({{1, 1}, {1, 2}, {2, 1}, {3}});
  return random->Pick<Ints>({{-1, -1}, {-1, -1, 2}, {-1, 3}, {-1}, {3}, {2, 3}});
}

}  // namespace

ir::Attributes RandomAttributes(const ir::OpDef& op, Random* random, int* num_streams) {
  ir::Attributes attributes;
  for (const ir::AttributeDef& def : op.attributes) {
    const bool is_of_window =
        def.name == "groups" || std::holds_alternative<std::vector<int64_t>>(def.example);
    const bool stays = is_of_window ? random->Percent(60) : !IsBool(def);
    if (!def.required && stays) continue;
    if (def.name == "rows") {
      attributes.Set(def.name, int64_t{3});  // of a table: ids are 0, 1 or 2
    } else if (std::holds_alternative<double>(def.example)) {
      attributes.Set(def.name, 0.25 * (1 + random->Below(3)));
    } else if (std::holds_alternative<int64_t>(def.example)) {
      attributes.Set(def.name,
                     int64_t{random->Below(4)} + (op.traits.is_random ? ++*num_streams * 8 : 0));
    } else if (std::holds_alternative<bool>(def.example)) {
      attributes.Set(def.name, random->Percent(50));
    } else if (std::holds_alternative<std::string>(def.example)) {
      attributes.Set(def.name,
                     def.name == "method"
                         ? random->Pick<std::string>({"average", "adaptive", "nearest", "linear"})
                         : "f32");
    } else {
      attributes.Set(def.name, RandomInts(def.name, random));
    }
  }
  return attributes;
}

}  // namespace zg::testing
