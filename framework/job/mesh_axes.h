// The mesh of ranks as text: "replica=2,shard=4", "data=2,tensor=2/4" (framework/ir/mesh.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/mesh.h"

namespace zg {

// "": no axes, which means all ranks along "data". Errors: text that is not a list of NAME=SIZE; an
// axis other than data, shard, replica and tensor, or given twice; sizes below 1, or with a product
// above 2^20 ranks.
StatusOr<std::vector<MeshAxis>> ParseMeshAxes(std::string_view text);

}  // namespace zg
