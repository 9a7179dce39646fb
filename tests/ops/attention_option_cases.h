// The cases of attention's ops that take q, k and v apart, with options.
#pragma once

#include "tests/ops/op_case.h"

namespace zg::testing {

FamilyCases AttentionOptionCases();

}  // namespace zg::testing
