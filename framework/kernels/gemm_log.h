// By which algorithms products are multiplied, for the log.
#pragma once

#include <string>

namespace zg {

// Whether the log takes what is said at debug.
bool LogsGemms();

// Says it at debug, once in a process: kernels are made several times, and many nodes have the same
// product.
void LogGemm(const std::string& text);

}  // namespace zg
