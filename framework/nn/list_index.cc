#include "framework/nn/list_index.h"

#include "framework/nn/module.h"
#include "framework/nn/trace.h"

namespace zg::nn {

size_t CheckedIndex(const Module& list, int64_t i, int64_t size) {
  if (i < 0 || i >= size) {
    EndProcess(InvalidArgument("modules '{}': got the index {}, but their number is {}",
                               list.path(), i, size));
  }
  return static_cast<size_t>(i);
}

}  // namespace zg::nn
