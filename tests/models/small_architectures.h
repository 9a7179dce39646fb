// Small models of kinds that the demos are not, with parameters and data of tests/reference/models,
// like small_models.h (tests/reference/architectures.py has the same).
#pragma once

#include <map>
#include <string>

#include "tests/models/small_models.h"

namespace zg::testing {

const std::map<std::string, SmallModel (*)()>& SmallArchitectures();

}  // namespace zg::testing
