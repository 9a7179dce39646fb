#include "framework/job/logging.h"

#include <fmt/core.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "framework/job/console.h"
#include "framework/job/flag_names.h"

namespace zg {
namespace {

// The virtual rank of this thread; none: the rank of the process.
thread_local std::optional<int> rank_of_thread;

class RankSink : public spdlog::sinks::ansicolor_stderr_sink_mt {
 public:
  RankSink(int rank_of_process, spdlog::color_mode mode)
      : ansicolor_stderr_sink(mode), rank_of_process_(rank_of_process) {}

  void log(const spdlog::details::log_msg& message) override {
    const int rank = rank_of_thread.value_or(rank_of_process_);
    if (rank > 0 && message.level < spdlog::level::warn) return;
    const std::string text = (rank > 0 ? fmt::format("rank {}: ", rank) : "") +
                             WithFlagNames({message.payload.data(), message.payload.size()});
    spdlog::details::log_msg shown = message;
    shown.payload = text;
    ansicolor_stderr_sink::log(shown);
  }

 private:
  const int rank_of_process_;
};

}  // namespace

const std::vector<std::string>& LogLevels() {
  static const std::vector<std::string> levels = {"trace", "debug", "info", "warn", "error", "off"};
  return levels;
}

void StartLogging(int rank, const std::string& level) {
  // Decided here, because the ranks' standard error is a pipe to the launcher's terminal.
  const auto color_mode = WantColors() ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto logger =
      std::make_shared<spdlog::logger>("zerograph", std::make_shared<RankSink>(rank, color_mode));
  logger->set_pattern("%^%l%$: %v");
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

void LogAsRank(int rank) { rank_of_thread = rank; }

}  // namespace zg
