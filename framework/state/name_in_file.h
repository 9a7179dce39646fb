// NameInFile: how a file of parameters names them, where it differs from the model.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace zg {

// The name in the file of the parameter or buffer with this path in the model. An empty function: the
// same name. Two parameters may read one tensor.
using NameInFile = std::function<std::string(const std::string& path)>;

// Replaces texts within names: each pair, in their order, wherever the first text occurs.
//   trainer->load_parameters("model.safetensors", "", "", zg::renaming({{"blocks.", "model.layers."},
//                                                                      {".attention.", ".self_attn."}}));
NameInFile renaming(std::vector<std::pair<std::string, std::string>> replacements);

}  // namespace zg
