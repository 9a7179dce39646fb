// FindQuotedOps, FindNamedOps: find places in C++ text that name an op without making a node of it.
// Passes and the runtime ask for an op's traits (framework/ir/op_traits.h) instead of comparing
// names.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace zg::testing {

struct QuotedOp {
  int line = 0;
  std::string op;
};

// In the order of the text. Comments do not count, nor does code that makes a node or names the
// function that makes it:
//   builder.Op("add", ...)  builder.Ops(  trace->Append(  Mean(  UpdateRule{  AddNode(section, {
//   Trace::Of("add")  Trace::Function called("add")
// nor do the names of functions of Vars in their errors:
//   Checked("add", ...)  Caller(  DimOf(  WithContext(  OfEqualShapes(  AlongDim(  CompareWith(  Draw(
std::vector<QuotedOp> FindQuotedOps(std::string_view text, const std::set<std::string>& ops);

// The same of the constants of framework/ops/op_names.h; `op` is the constant's name.
std::vector<QuotedOp> FindNamedOps(std::string_view text);

}  // namespace zg::testing
