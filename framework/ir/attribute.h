// Attributes: the compile-time arguments of a node, by name.
// Text form: `(epsilon=1e-05, shape=[4,8], causal=true)`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/role.h"
#include "framework/ir/sbp.h"
#include "framework/tensor/tensor_type.h"

namespace zg::ir {

// In text the last five look like "bf16", [4,8], "S(0)", "{S(0),B}" and "optimizer_state".
using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, DType,
                               Shape, Sbp, NdSbp, Role>;

// Doubles always have a point or an exponent.
std::string ToString(const Attribute& attribute);

// Copies share their items until one of them is set: a node's attributes are copied for every
// question to its op. Nothing that walks through the map is inline: every file that copies a node
// would instantiate it, which took five to ten percent of the time of compiling.
class Attributes {
 public:
  using Items = std::map<std::string, Attribute, std::less<>>;

  Attributes();
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> items);
  Attributes(const Attributes&) = default;  // what is moved from keeps its items, too
  Attributes& operator=(const Attributes&) = default;

  bool Has(std::string_view name) const;
  void Set(std::string name, Attribute value);

  // The attribute must exist and have that type; a node made through the graph has all attributes
  // of its op.
  bool Bool(std::string_view name) const { return Get<bool>(name); }
  int64_t Int(std::string_view name) const { return Get<int64_t>(name); }
  double Float(std::string_view name) const { return Get<double>(name); }
  const std::string& String(std::string_view name) const { return Get<std::string>(name); }
  const std::vector<int64_t>& Ints(std::string_view name) const {
    return Get<std::vector<int64_t>>(name);
  }
  zg::DType DType(std::string_view name) const { return Get<zg::DType>(name); }
  const zg::Shape& Shape(std::string_view name) const { return Get<zg::Shape>(name); }
  zg::Sbp Sbp(std::string_view name) const { return Get<zg::Sbp>(name); }
  zg::Role Role(std::string_view name) const { return Get<zg::Role>(name); }
  const zg::NdSbp& NdSbp(std::string_view name) const { return Get<zg::NdSbp>(name); }

  const Items& items() const { return *items_; }
  friend bool operator==(const Attributes& a, const Attributes& b);

 private:
  const Attribute& Find(std::string_view name) const;
  [[noreturn]] void FailOfOtherType(std::string_view name) const;
  template <typename T>
  const T& Get(std::string_view name) const {
    const T* const value = std::get_if<T>(&Find(name));
    if (value == nullptr) FailOfOtherType(name);
    return *value;
  }

  std::shared_ptr<const Items> items_;  // never null
};

// An attribute that an op or a pass accepts.
struct AttributeDef {
  std::string name;
  Attribute example;  // fixes the type; also the default when `required` is false
  bool required = false;
};

// Fills in missing attributes with their defaults, and converts literals to the type that the def
// asks for: a string becomes a DType, an Sbp, an NdSbp or a Role, a list of integers a Shape.
// Errors: an attribute that no def names, an attribute of another type than the def's example, a
// missing required one.
Status CompleteAttributes(const std::vector<AttributeDef>& defs, Attributes* attributes);

}  // namespace zg::ir
