// The domains of ops, for random operands.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "framework/ir/attribute.h"
#include "framework/ir/graph.h"

namespace zg::testing {

using NodeMaker =
    std::function<ir::Value*(const std::string& op, const std::vector<ir::Value*>& inputs,
                             const ir::Attributes& attributes)>;

// Maps x, operand `index` of an op, into its domain, where its result is not large.
ir::Value* InDomain(const std::string& op, size_t index, ir::Value* x, const NodeMaker& make);

}  // namespace zg::testing
