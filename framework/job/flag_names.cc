#include "framework/job/flag_names.h"

#include <algorithm>

namespace zg {
namespace {

struct SettingFlag {
  std::string_view setting;
  std::string_view flag;
};

// The settings that errors quote.
constexpr SettingFlag kFlags[] = {
    {"detect_anomaly", "detect-anomaly"},
    {"device", "device"},
    {"dtype", "dtype"},
    {"dump_directory", "print-ir"},
    {"gemm_choices", "gemm-choices"},
    {"gpu_collectives", "gpu-collectives"},
    {"init", "init"},
    {"keep", "keep"},
    {"max_grad_norm", "clip-norm"},
    {"max_memory", "max-memory"},
    {"metrics", "metrics"},
    {"metrics_histograms", "metrics-histograms"},
    {"on_non_finite", "on-non-finite"},
    {"overlap", "overlap"},
    {"profile", "profile"},
    {"record", "cuda-graph"},
    {"resume", "resume"},
    {"save", "save"},
    {"save_async", "save-async"},
    {"steps", "steps"},
    {"threads", "threads"},
    {"trace", "trace"},
};

}  // namespace

std::string_view FlagOf(std::string_view setting) {
  for (const SettingFlag& known : kFlags) {
    if (known.setting == setting) return known.flag;
  }
  return "";
}

std::string WithFlagNames(std::string_view text) {
  std::string named;
  while (!text.empty()) {
    const size_t begin = std::min(text.find('`'), text.size());
    named += text.substr(0, begin);
    text.remove_prefix(begin);
    const size_t end = text.find('`', 1);
    if (end == std::string_view::npos) return named.append(text);
    const std::string_view quoted = text.substr(1, end - 1);
    const size_t equals = quoted.find('=');
    const std::string_view flag = FlagOf(quoted.substr(0, equals));
    if (flag.empty()) {  // the second quote may begin a setting
      named += text.substr(0, end);
      text.remove_prefix(end);
      continue;
    }
    named.append("--").append(flag);
    if (equals != std::string_view::npos) named.append(" ").append(quoted.substr(equals + 1));
    text.remove_prefix(end + 1);
  }
  return named;
}

}  // namespace zg
