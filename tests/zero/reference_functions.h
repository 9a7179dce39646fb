// The functions of tests/reference/make_functions.py, by its names.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "framework/nn/nn.h"

namespace zg {

using Function = std::function<Var(Var a, Var b)>;

const std::map<std::string, Function>& TensorFunctions();
const std::map<std::string, Function>& ImageFunctions();  // and of signals and volumes
const std::map<std::string, Function>& ModuleFunctions();
const std::map<std::string, Function>& ScatterFunctions();  // and searches, running results
const std::map<std::string, Function>& MatrixFunctions();   // and special functions
const std::map<std::string, Function>& ShapeFunctions();

}  // namespace zg
