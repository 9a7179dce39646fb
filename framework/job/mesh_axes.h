// The mesh of ranks as text: "replica=2,shard=4" (framework/ir/mesh.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/mesh.h"

namespace zg {

// "": no axes, which stands for all ranks along "data". Errors: text that is no list of NAME=SIZE;
// an axis other than data, shard and replica, or given twice; sizes below 1, or that are more than
// 2^20 ranks together.
StatusOr<std::vector<MeshAxis>> ParseMeshAxes(std::string_view text);

}  // namespace zg
