#include "framework/job/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace zg {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kLinesName = "/metrics.jsonl";
constexpr std::string_view kEventsPrefix = "events.out.tfevents.";
constexpr std::string_view kLineBegin = "{\"step\":";
constexpr double kMostExactInteger = 9007199254740992;  // 2^53

double SecondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::optional<int64_t> ParseNumber(std::string_view text) {
  int64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

std::optional<int64_t> StepOf(std::string_view line) {
  if (line.substr(0, kLineBegin.size()) != kLineBegin || line.back() != '}') return std::nullopt;
  return ParseNumber(line.substr(kLineBegin.size()));
}

// Integers, such as bytes, in full; others with 9 significant digits, which is every bit of an f32.
Json Number(double number) {
  if (!std::isfinite(number)) return nullptr;
  if (number == std::floor(number) && std::fabs(number) < kMostExactInteger) {
    return static_cast<int64_t>(number);
  }
  return std::strtod(fmt::format("{:.9g}", number).c_str(), nullptr);
}

std::string Line(int64_t step, double time_s, const std::vector<NamedScalar>& values) {
  Json line = {{"step", step}, {"time", std::round(time_s * 1000) / 1000}};
  for (const NamedScalar& scalar : values) line[scalar.name] = Number(scalar.value);
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The lines of earlier runs that are kept.
struct KeptLines {
  int64_t bytes = 0;
  int64_t num_removed_steps = 0;
  std::set<std::string> names_of_last_step;
};

StatusOr<KeptLines> FindLinesUpTo(const std::string& path, int64_t last_step) {
  KeptLines kept;
  std::ifstream file(path, std::ios::binary);
  int64_t number = 0;
  int64_t step_before = 0;  // last step among the removed ones
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (file.eof()) break;  // a line without an end: its writer was killed
    const std::optional<int64_t> step = StepOf(line);
    if (!step) {
      return DataLoss("{}: line {}: got '{}', expected a line of metrics; give another directory",
                      path, number, line.substr(0, 40));
    }
    if (*step > last_step) {
      kept.num_removed_steps += *step != step_before ? 1 : 0;
      step_before = *step;
      continue;
    }
    kept.bytes += static_cast<int64_t>(line.size()) + 1;
    if (*step == last_step) {
      const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      for (const auto& item : json.items()) kept.names_of_last_step.insert(item.key());
    }
  }
  return kept;
}

// Readers take the files of a directory in the order of their names, which is the order of the
// seconds in them: this name must come after the existing ones.
std::string EventsPath(const std::string& directory) {
  auto seconds = static_cast<int64_t>(SecondsSince1970());
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(kEventsPrefix, 0) != 0) continue;
    const auto other = ParseNumber(std::string_view(name).substr(kEventsPrefix.size()));
    if (other) seconds = std::max(seconds, *other + 1);
  }
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return fmt::format("{}/{}{:010}.{}.{}", directory, kEventsPrefix, seconds, host, getpid());
}

}  // namespace

StatusOr<std::unique_ptr<Metrics>> Metrics::Open(const std::string& directory, int64_t steps_done) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return FailedPrecondition("{}: cannot be made: {}", directory, error.message());
  ZG_ASSIGN_OR_RETURN(AppendFile lines, AppendFile::Open(directory + std::string(kLinesName)));
  ZG_ASSIGN_OR_RETURN(KeptLines kept, FindLinesUpTo(lines.path(), steps_done));
  ZG_RETURN_IF_ERROR(lines.Truncate(kept.bytes));
  ZG_ASSIGN_OR_RETURN(AppendFile events, AppendFile::Open(EventsPath(directory)));
  std::unique_ptr<Metrics> metrics(new Metrics(std::move(lines), std::move(events)));
  metrics->num_removed_steps_ = kept.num_removed_steps;
  metrics->last_step_ = steps_done;
  metrics->names_of_last_step_ = std::move(kept.names_of_last_step);
  const double now = SecondsSince1970();
  ZG_RETURN_IF_ERROR(
      metrics->events_.Append(VersionEvent(now) + RunStartEvent(now, steps_done + 1)));
  return metrics;
}

Status Metrics::Write(int64_t step, const std::vector<NamedScalar>& values) {
  if (step != last_step_) names_of_last_step_ = {"step", "time"};
  last_step_ = step;
  std::vector<NamedScalar> news;
  for (const NamedScalar& scalar : values) {
    if (names_of_last_step_.insert(scalar.name).second) news.push_back(scalar);
  }
  if (news.empty()) return Status::Ok();
  const double now = SecondsSince1970();
  ZG_RETURN_IF_ERROR(lines_.Append(Line(step, now, news)));
  return events_.Append(ScalarsEvent(now, step, news));
}

Status Metrics::WriteHistograms(int64_t step,
                                const std::map<std::string, ValueHistogram>& histograms) {
  return events_.Append(HistogramsEvent(SecondsSince1970(), step, histograms));
}

}  // namespace zg
