// NodeError: an error that names the node and its section.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "framework/base/status.h"
#include "framework/ir/printer.h"

namespace zg::ir {

template <typename... Args>
Status NodeError(const Node& node, fmt::format_string<Args...> format, Args&&... args) {
  return InvalidArgument(format, std::forward<Args>(args)...).WithContext(NodeLabel(node));
}

}  // namespace zg::ir
