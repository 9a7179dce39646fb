// The cases of the attention ops that take separate q, k and v, with options.
#pragma once

#include "tests/ops/op_case.h"

namespace zg::testing {

FamilyCases AttentionOptionCases();

}  // namespace zg::testing
