// More small models, of what reads sounds, images, videos and rays; as in small_architectures.h.
#pragma once

#include <map>
#include <string>

#include "tests/models/small_models.h"

namespace zg::testing {

const std::map<std::string, SmallModel (*)()>& SensorArchitectures();

}  // namespace zg::testing
