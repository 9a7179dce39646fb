#include "framework/job/logging.h"

#include <fmt/core.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include "framework/job/console.h"

namespace zg {

const std::vector<std::string>& LogLevels() {
  static const std::vector<std::string> levels = {"trace", "debug", "info", "warn", "error", "off"};
  return levels;
}

void StartLogging(int rank, int num_ranks, const std::string& level) {
  // Decided here, because the ranks' standard error is a pipe to the launcher's terminal.
  const auto color_mode = WantColors() ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(color_mode);
  auto logger = std::make_shared<spdlog::logger>("zerograph", std::move(sink));
  const std::string who = num_ranks > 1 && rank > 0 ? fmt::format("rank {}: ", rank) : "";
  logger->set_pattern("%^%l%$: " + who + "%v");
  const spdlog::level::level_enum asked = spdlog::level::from_str(level);
  logger->set_level(rank == 0 ? asked : std::max(asked, spdlog::level::warn));
  logger->flush_on(spdlog::level::trace);
  logger->set_error_handler([](const std::string& message) {
    static std::atomic<bool> has_warned = false;
    if (!has_warned.exchange(true)) {
      print_error(fmt::format("warning: the log cannot be written ({})\n", message));
    }
  });
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace zg
