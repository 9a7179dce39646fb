#include "tests/testing/pass_text.h"

#include <algorithm>

#include "framework/base/status.h"
#include "framework/ir/attribute_parser.h"
#include "framework/ir/text_cursor.h"

namespace zg::testing {
namespace {

size_t EndOfName(std::string_view pass) { return std::min(pass.find_first_of("(, "), pass.size()); }

}  // namespace

std::string PassName(std::string_view pass) { return std::string(pass.substr(0, EndOfName(pass))); }

ir::Attributes PassOptions(std::string_view pass) {
  ir::TextCursor cursor(pass.substr(EndOfName(pass)), "options");
  const StatusOr<ir::Attributes> options = ir::ParseAttributes(&cursor);
  return options.ok() ? *options : ir::Attributes();
}

}  // namespace zg::testing
