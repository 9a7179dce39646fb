#include "framework/job/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "framework/base/format.h"
#include "framework/job/console.h"

namespace zg {
namespace {

constexpr double kSecondsBetweenRedraws = 0.1;
constexpr int kMinBarCells = 5;
constexpr int kMaxBarCells = 30;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void MovingAverage::Add(double value) {
  if (is_first_) {
    is_first_ = false;
    return;
  }
  window_.push_back(value);
  if (window_.size() > kWindow) window_.pop_front();
}

double MovingAverage::mean() const {
  if (window_.empty()) return 0;
  return std::accumulate(window_.begin(), window_.end(), 0.0) / static_cast<double>(window_.size());
}

void TimeLeft::Add(double ms, double now_s) {
  if (!window_.empty()) {
    between_s_ += std::max(0.0, now_s - last_end_s_ - ms / 1e3);
    ++num_between_;
    if (!is_warm_) window_.clear();
    is_warm_ = true;
  }
  last_end_s_ = now_s;
  window_.push_back(ms);
  if (window_.size() > kWindow) window_.pop_front();
}

double TimeLeft::Seconds(int64_t num_steps) const {
  if (window_.empty()) return 0;
  std::vector<double> sorted(window_.begin(), window_.end());
  std::sort(sorted.begin(), sorted.end());
  const auto left_out = static_cast<std::ptrdiff_t>(sorted.size() / 4);
  const double sum = std::accumulate(sorted.begin() + left_out, sorted.end() - left_out, 0.0);
  const double step_s = sum / static_cast<double>(sorted.size() - 2 * left_out) / 1e3;
  const double between_s = num_between_ > 0 ? between_s_ / static_cast<double>(num_between_) : 0;
  return static_cast<double>(num_steps) * (step_s + between_s);
}

void Progress::Step(const StepRecord& record) {
  ms_.Add(record.ms);
  tokens_.Add(static_cast<double>(record.work.tokens));
  flops_.Add(record.work.flops);
  time_left_.Add(record.ms, Now());
  if (options_.terminal_columns == 0) {
    print_out(Line(record) + "\n");
    return;
  }
  const double now = Now();
  const bool is_last = record.step == options_.total_steps;
  if (bar_is_open_ && !is_last && now - last_redraw_s_ < kSecondsBetweenRedraws) return;
  last_redraw_s_ = now;
  bar_is_open_ = true;
  print_error("\r" + Bar(record));
}

void Progress::Finish() {
  if (bar_is_open_) print_error("\n");
  bar_is_open_ = false;
}

double Progress::PerSecond(const MovingAverage& amount) const {
  return ms_.mean() > 0 ? amount.mean() * 1000 / ms_.mean() : 0;
}

std::string Progress::TokenRate() const {
  const double rate = PerSecond(tokens_);
  return rate > 0 ? FormatCount(rate) : "-";
}

std::string Progress::Utilization() const {
  const double rate = PerSecond(flops_);
  if (rate <= 0 || options_.peak_flops <= 0) return "n/a";
  return FormatPercent(rate / options_.peak_flops);
}

std::string Progress::Remaining(int64_t step) const {
  const int64_t num_left = options_.total_steps - step;
  if (num_left <= 0) return "";
  return fmt::format(" {} left", FormatDuration(time_left_.Seconds(num_left)));
}

std::string Progress::Line(const StepRecord& record) const {
  const std::string total = fmt::format("{}", options_.total_steps);
  std::string line =
      fmt::format("step {:>{}}/{}  loss {:.6f}", record.step, total.size(), total, record.loss);
  if (record.grad_norm) line += fmt::format("  grad norm {:.4g}", *record.grad_norm);
  line += fmt::format("  lr {:.3e}  {:.1f} ms", record.lr, record.ms);
  if (record.work.tokens > 0) line += fmt::format("  {} tokens/s", TokenRate());
  line += fmt::format("  MFU {}", Utilization());
  if (options_.peak_memory_bytes > 0) {
    line += fmt::format("  peak {}", FormatBytes(options_.peak_memory_bytes));
  }
  const std::string remaining = Remaining(record.step);
  return remaining.empty() ? line : line + " " + remaining;
}

// Padded to one less than the terminal's width: a full line would wrap, and the previous drawing
// must be covered.
std::string Progress::Bar(const StepRecord& record) const {
  const std::string head = fmt::format("step {}/{}", record.step, options_.total_steps);
  const double ms = ms_.has_value() ? ms_.mean() : record.ms;
  std::string tail = fmt::format("loss {:.4f}", record.loss);
  if (record.grad_norm) tail += fmt::format(" norm {:.3g}", *record.grad_norm);
  tail += fmt::format(" lr {:.3g} {:.1f} ms", record.lr, ms);
  if (record.work.tokens > 0) tail += fmt::format(" {} tokens/s", TokenRate());
  if (options_.peak_flops > 0) tail += fmt::format(" MFU {}", Utilization());
  tail += Remaining(record.step);

  const int width = std::max(options_.terminal_columns - 1, 1);
  const int free_cells = width - static_cast<int>(head.size() + tail.size()) - 4;  // " [", "] "
  std::string bar;
  if (const int cells = std::min(free_cells, kMaxBarCells); cells >= kMinBarCells) {
    const double done = static_cast<double>(record.step) /
                        static_cast<double>(std::max<int64_t>(options_.total_steps, 1));
    const int filled = static_cast<int>(std::floor(std::clamp(done, 0.0, 1.0) * cells));
    bar = " [" + std::string(filled, '#') + std::string(cells - filled, '.') + "]";
  }
  std::string line = head + bar + " " + tail;
  line.resize(width, ' ');
  return line;
}

}  // namespace zg
