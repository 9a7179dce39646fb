// A shared library of CUDA's that is loaded at first use. If it were linked as usual, every process
// would pay for it at its start, including ranks on the CPU, and a host without it could run none.
#pragma once

#include <dlfcn.h>

#include <string>

namespace zg {

class LazyLibrary {
 public:
  explicit LazyLibrary(const std::string& name)
      : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)),
        problem_(handle_ != nullptr
                     ? ""
                     : std::string(dlerror()) + "; add its directory to LD_LIBRARY_PATH") {}

  // Empty, or why the library is missing.
  const std::string& problem() const { return problem_; }

  // Null if the library does not have it.
  template <typename Function>
  Function* Find(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* const handle_;
  const std::string problem_;
};

// Returns the function's result, or `missing` if the function was not found.
template <typename Result, typename... Parameters>
Result CallOr(Result missing, Result (*function)(Parameters...), Parameters... arguments) {
  return function == nullptr ? missing : function(arguments...);
}

}  // namespace zg
