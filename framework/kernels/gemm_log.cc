#include "framework/kernels/gemm_log.h"

#include <spdlog/spdlog.h>

#include <mutex>
#include <set>

namespace zg {

bool LogsGemms() { return spdlog::should_log(spdlog::level::debug); }

void LogGemm(const std::string& text) {
  static std::mutex mutex;
  static auto& logged = *new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  if (logged.insert(text).second) spdlog::debug("{}", text);
}

}  // namespace zg
