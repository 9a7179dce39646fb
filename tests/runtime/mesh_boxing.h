// Executes every change of placement on a mesh, and compares each rank's result with its part of
// the logical value.
#pragma once

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/ir/mesh.h"

namespace zg::testing {

// Tests every cell of the boxing table along each axis with every placement along the others, and
// sums over several axes at once to every placement. Every rank of the communicator, as many as in
// the mesh, must call this. Error: the first rank, value and element that differs.
Status CheckBoxing(Communicator& communicator, const Mesh& mesh);

// The number of these changes of placement.
int NumChangesOfPlacement(const Mesh& mesh);

}  // namespace zg::testing
