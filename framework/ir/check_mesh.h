// CheckMesh: whether a mesh that a program describes can be one.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/mesh.h"

namespace zg {

// Errors: an axis without a name of letters, digits and '_', or with that of another one; fewer than 1
// rank along an axis; more than 2^20 ranks together; an error of CheckParts.
Status CheckMesh(const Mesh& mesh);

}  // namespace zg
