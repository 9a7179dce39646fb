// Storage: which values share memory. Every value is inside a buffer. Views, in-place updates,
// gradients that are produced in their bucket and gathers into a parameter are inside the buffer of
// another value, so that nothing is copied.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "framework/ir/graph.h"

namespace zg {

// Bytes [OffsetOn(mesh, rank), ...) of a buffer, on rank `rank`.
struct Location {
  int buffer = -1;
  int64_t offset_bytes = 0;
  // By mesh axis: the offset that a rank adds for each step of its coordinate. Empty: nothing.
  std::vector<int64_t> axis_stride_bytes;

  bool depends_on_rank() const;
  int64_t OffsetOn(const Mesh& mesh, int rank) const;
};

struct Buffer {
  const ir::Value* root = nullptr;  // the value that spans the buffer; gives its name and category
  int64_t bytes = 0;                // on one rank
  std::vector<const ir::Value*> members;
};

struct Storage {
  std::vector<Buffer> buffers;  // buffers merged into another have no members
  std::unordered_map<const ir::Value*, Location> locations;

  const Location& Of(const ir::Value* value) const { return locations.at(value); }
  bool IsInVariable(const ir::Value* value) const {
    return ir::IsVariable(*buffers[Of(value).buffer].root);
  }
};

// Applies the alias rules of all ops, in execution order:
//   kOutputInsideInput  always.
//   kInputInsideOutput  when the input spans its buffer, has no other reader, is of the same
//                       section, and is not a variable's.
//   kInPlace            when nothing reads the input's memory afterwards, and it is not a
//                       variable's.
//   assign              produces the new value in the variable's memory, when nothing reads the
//                       old value afterwards.
// If no rule applies, the node copies when it runs. A `wait` counts as the end of its start's work,
// not as another reader.
Storage AssignStorage(const ir::Graph& graph);

}  // namespace zg
