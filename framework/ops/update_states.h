// The kind of states that an optimizer's update keeps. Most updates keep numbers for each element of the
// parameter, which have its placement; a few ops do not.
#pragma once

#include "framework/ir/op_def.h"

namespace zg {

// What the states hold numbers for.
enum class StatesOf {
  kElements,
  kRowsAndColumns,  // of matrices: whole on every rank, since all have a part in them (factored_update.cc)
  kBlocks,          // of elements: codes, and a scale for each block (quantised_update.cc)
};

StatesOf StatesOfUpdate(const ir::OpDef& update);

}  // namespace zg
