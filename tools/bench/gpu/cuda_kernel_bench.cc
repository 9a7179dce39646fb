// The kernels of a GPT-2 training step in bf16 on a GPU, each against its floor: the time that its
// matrix products take at the peak, or its bytes at the bandwidth, whichever is longer. Both
// ceilings are measured in the same run: the peak by our own `linear` on large squares, the
// bandwidth by a copy within the device.
//
//   bazel run -c opt //tools/bench/gpu:cuda_kernel_bench -- --batch 16 --filter linear
//
// A case walks over more memory than caches hold. Its calls are recorded and replayed, so that
// launching them costs nothing.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "framework/device/cuda_device.h"
#include "framework/device/device.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/kernels/cuda/cuda_kernels.h"
#include "framework/ops/register_all_ops.h"
#include "framework/runtime/console.h"
#include "framework/runtime/flag_parser.h"
#include "framework/runtime/format.h"
#include "models/gpt/presets.h"
#include "tools/bench/gpu/kernel_cases.h"

namespace zg::bench {
namespace {

constexpr int64_t kPatternBytes = int64_t{4} << 20;
constexpr double kMinSeconds = 0.05;  // of what the clock sees at once
constexpr int kRounds = 5;

struct Options {
  std::string device = "cuda";
  std::string preset = "gpt2";
  int64_t batch = 16;
  int64_t vocabulary = 0;
  int64_t product_size = 8192;
  int64_t copy_mb = 1024;
  int64_t cold_mb = 512;
  std::string filter;
  bool list = false;
};

void AddFlags(FlagParser* parser, Options* options) {
  parser->AddChoice("device", &options->device, {"cuda", "cpu"}, "cpu: to try this program");
  parser->AddChoice("preset", &options->preset, {"gpt2", "mini"}, "sizes of the model");
  parser->AddInt("batch", &options->batch, AtLeast(1), "samples per micro-batch");
  parser->AddInt("vocab", &options->vocabulary, AtLeast(0),
                 "0: the preset's, up to the next multiple of 64");
  parser->AddInt("product-size", &options->product_size, AtLeast(1),
                 "rows and columns of the matrices that show the peak");
  parser->AddInt("copy-mb", &options->copy_mb, AtLeast(1),
                 "of the copy that shows the bandwidth, in units of 2^20 bytes");
  parser->AddInt(
      "cold-mb", &options->cold_mb, AtLeast(0),
      "a kernel goes through so much memory, in units of 2^20 bytes, before it comes back");
  parser->AddString("filter", &options->filter, "only kernels whose name has this");
  parser->AddBool("list", &options->list, "the kernels and their sizes; needs no GPU");
}

struct Ceilings {
  double flops_per_s = 0.0;
  double bytes_per_s = 0.0;
  double FloorSeconds(const KernelCase& test) const {
    return std::max(static_cast<double>(test.flops) / flops_per_s,
                    static_cast<double>(test.moved_bytes) / bytes_per_s);
  }
  bool IsBoundByProducts(const KernelCase& test) const {
    return static_cast<double>(test.flops) / flops_per_s >
           static_cast<double>(test.moved_bytes) / bytes_per_s;
  }
};

using Work = std::function<Status()>;

StatusOr<double> SecondsOf(Device& device, const Work& work, int times) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) ZG_RETURN_IF_ERROR(work());
  ZG_RETURN_IF_ERROR(device.Synchronize());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The median of several rounds, for one run of what `work` queues.
StatusOr<double> MedianSeconds(Device& device, const Work& work) {
  ZG_RETURN_IF_ERROR(work());  // loads code
  ZG_RETURN_IF_ERROR(device.Synchronize());
  std::unique_ptr<RecordedWork> recorded;
  if (!device.is_host()) {
    ZG_RETURN_IF_ERROR(device.BeginRecording());
    ZG_RETURN_IF_ERROR(work());
    ZG_ASSIGN_OR_RETURN(recorded, device.EndRecording());
  }
  const Work run = [&] { return recorded != nullptr ? recorded->Replay() : work(); };
  ZG_RETURN_IF_ERROR(SecondsOf(device, run, 1).status());
  ZG_ASSIGN_OR_RETURN(const double once, SecondsOf(device, run, 1));
  const int times = static_cast<int>(std::clamp(kMinSeconds / once, 1.0, 1000.0));
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    ZG_ASSIGN_OR_RETURN(const double all, SecondsOf(device, run, times));
    seconds.push_back(all / times);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[kRounds / 2];
}

// Random contents for an operand, to be written again and again. Zeros would not do: multiplying
// them takes less power, so that the clock is higher.
std::vector<std::byte> Pattern(const TensorType& type, int64_t max_id, bool positive) {
  std::mt19937_64 random(1);
  std::vector<std::byte> pattern(std::min(kPatternBytes, type.bytes()));
  const int64_t size = SizeOf(type.dtype);
  for (int64_t at = 0; at < static_cast<int64_t>(pattern.size()); at += size) {
    if (type.dtype == DType::kI64) {
      const int64_t id = static_cast<int64_t>(random() % max_id);
      std::memcpy(&pattern[at], &id, size);
      continue;
    }
    const float unit = static_cast<float>(random() >> 40) * 0x1p-24f;
    const float value = positive ? unit : 2 * unit - 1;
    const int64_t skipped = sizeof(value) - size;  // bf16 is the upper half of an f32
    std::memcpy(&pattern[at], reinterpret_cast<const std::byte*>(&value) + skipped, size);
  }
  return pattern;
}

// Where kernels run, and what memory they go through there.
struct Place {
  Device* device = nullptr;
  const KernelRegistry* kernels = nullptr;
  int64_t cold_bytes = 0;
};

// A kernel with as many sets of operands as are more than a cache holds.
class Bench {
 public:
  Bench(Place place, const KernelCase& test)
      : device_(*place.device),
        kernels_(*place.kernels),
        cold_bytes_(place.cold_bytes),
        test_(test) {}

  StatusOr<double> MedianSecondsPerCall() {
    ZG_RETURN_IF_ERROR(Prepare());
    ZG_ASSIGN_OR_RETURN(const double seconds, MedianSeconds(device_, [this] { return RunAll(); }));
    ZG_RETURN_IF_ERROR(CheckFault());
    return seconds / static_cast<double>(sets_.size());
  }

 private:
  struct Operands {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
  };

  Status Prepare() {
    ZG_ASSIGN_OR_RETURN(kernel_, kernels_.Make(test_.spec));
    ZG_ASSIGN_OR_RETURN(workspace_, device_.Allocate(kernel_->workspace_bytes()));
    ZG_ASSIGN_OR_RETURN(device_step_, device_.Allocate(sizeof(step_)));
    ZG_RETURN_IF_ERROR(device_.Write(device_step_.get(), &step_, sizeof(step_)));
    ZG_ASSIGN_OR_RETURN(fault_, device_.Allocate(sizeof(DeviceFault)));
    for (const TensorType& type : test_.spec.call.inputs) {
      patterns_.push_back(Pattern(type, test_.max_id, test_.spec.call.op->is_update));
    }
    const int64_t num_sets = std::max<int64_t>(1, cold_bytes_ / test_.moved_bytes);
    for (int64_t i = 0; i < num_sets; ++i) ZG_RETURN_IF_ERROR(AddOperands());
    return Status::Ok();
  }

  StatusOr<std::byte*> AllocateOperand(const TensorType& type) {
    ZG_ASSIGN_OR_RETURN(DeviceBytes memory, device_.Allocate(type.bytes()));
    memory_.push_back(std::move(memory));
    return memory_.back().get();
  }

  Status AddOperands() {
    const OpCall& call = test_.spec.call;
    Operands set;
    for (const TensorType& type : call.inputs) {
      ZG_ASSIGN_OR_RETURN(std::byte* const data, AllocateOperand(type));
      const std::vector<std::byte>& pattern = patterns_[set.inputs.size()];
      for (int64_t at = 0; at < type.bytes(); at += kPatternBytes) {
        const int64_t bytes = std::min(kPatternBytes, type.bytes() - at);
        ZG_RETURN_IF_ERROR(device_.Write(data + at, pattern.data(), bytes));
      }
      set.inputs.push_back(data);
    }
    for (const TensorType& type : test_.spec.outputs) {
      const int output = static_cast<int>(set.outputs.size());
      if (const void* inside = InputThatHolds(set, output)) {
        set.outputs.push_back(const_cast<void*>(inside));
        continue;
      }
      ZG_ASSIGN_OR_RETURN(std::byte* const data, AllocateOperand(type));
      set.outputs.push_back(data);
    }
    sets_.push_back(std::move(set));
    return Status::Ok();
  }

  // Updates write where they read; null for other outputs.
  const void* InputThatHolds(const Operands& set, int output) const {
    const OpCall& call = test_.spec.call;
    if (call.op->aliases == nullptr) return nullptr;
    for (const AliasRule& rule : call.op->aliases(call)) {
      const bool is_inside = rule.kind == AliasRule::Kind::kOutputInsideInput;
      if (is_inside && rule.output == output) return set.inputs[rule.input];
    }
    return nullptr;
  }

  Status RunAll() {
    for (const Operands& set : sets_) {
      KernelArguments arguments = {set.inputs.data(), set.outputs.data(), workspace_.get(), &step_};
      arguments.stream = device_.stream();
      if (!device_.is_host()) {
        arguments.device_step = reinterpret_cast<const StepContext*>(device_step_.get());
        arguments.fault = reinterpret_cast<DeviceFault*>(fault_.get());
      }
      ZG_RETURN_IF_ERROR(kernel_->Run(arguments));
    }
    return Status::Ok();
  }

  Status CheckFault() {
    DeviceFault fault;
    std::vector<std::byte> scratch;
    ZG_ASSIGN_OR_RETURN(const std::byte* data, device_.Read(fault_.get(), sizeof(fault), &scratch));
    std::memcpy(&fault, data, sizeof(fault));
    if (fault.happened == 0) return Status::Ok();
    return FailedPrecondition("{}: {}", test_.name, kernel_->FaultText(fault));
  }

  Device& device_;
  const KernelRegistry& kernels_;
  const int64_t cold_bytes_;
  const KernelCase& test_;
  const StepContext step_;
  std::unique_ptr<Kernel> kernel_;
  DeviceBytes workspace_;
  DeviceBytes device_step_;
  DeviceBytes fault_;
  std::vector<std::vector<std::byte>> patterns_;  // by input
  std::vector<DeviceBytes> memory_;
  std::vector<Operands> sets_;
};

StatusOr<Ceilings> MeasureCeilings(const Place& place, const Options& options) {
  Ceilings ceilings;
  ZG_ASSIGN_OR_RETURN(const KernelCase product, SquareProduct(options.product_size));
  ZG_ASSIGN_OR_RETURN(const double product_seconds, Bench(place, product).MedianSecondsPerCall());
  ceilings.flops_per_s = static_cast<double>(product.flops) / product_seconds;
  Device& device = *place.device;
  const int64_t bytes = options.copy_mb << 20;
  ZG_ASSIGN_OR_RETURN(const DeviceBytes from, device.Allocate(bytes));
  ZG_ASSIGN_OR_RETURN(const DeviceBytes to, device.Allocate(bytes));
  ZG_ASSIGN_OR_RETURN(const double copy_seconds, MedianSeconds(device, [&] {
                        return device.Copy(to.get(), from.get(), bytes);
                      }));
  ceilings.bytes_per_s = 2 * static_cast<double>(bytes) / copy_seconds;  // read and written
  return ceilings;
}

std::string List(const std::vector<KernelCase>& cases) {
  std::vector<std::vector<std::string>> rows = {{"kernel", "per step", "flops", "moved"}};
  for (const KernelCase& test : cases) {
    rows.push_back({test.name, fmt::to_string(test.times_per_step),
                    FormatCount(static_cast<double>(test.flops)), FormatBytes(test.moved_bytes)});
  }
  return FormatTable(rows);
}

std::string Row(const KernelCase& test, double seconds, const Ceilings& ceilings) {
  const double floor_seconds = ceilings.FloorSeconds(test);
  return fmt::format("{:<30}{:>10.1f}{:>10.1f}{:>12}{:>10}{:>10.1f}{:>8.0f}{:>10}{:>13.3f}\n",
                     test.name, 1e6 * seconds, 1e6 * floor_seconds,
                     FormatPercent(floor_seconds / seconds),
                     ceilings.IsBoundByProducts(test) ? "products" : "memory",
                     static_cast<double>(test.flops) / seconds / 1e12,
                     static_cast<double>(test.moved_bytes) / seconds / 1e9, test.times_per_step,
                     1e3 * static_cast<double>(test.times_per_step) * seconds);
}

Status Measure(const Options& options, const std::vector<KernelCase>& cases) {
  Place place = {&CpuDevice(), &CpuKernels(), options.cold_mb << 20};
  std::unique_ptr<Device> gpu;
  if (options.device == "cuda") {
    ZG_ASSIGN_OR_RETURN(gpu, OpenCudaDevice(0));
    place.device = gpu.get();
    place.kernels = &CudaKernels();
  }
  ZG_ASSIGN_OR_RETURN(const Ceilings ceilings, MeasureCeilings(place, options));
  PrintOut(fmt::format(
      "{}: {}, micro-batch {}, bf16\nceilings: {:.1f} TFLOP/s (products of {} rows and columns), "
      "{:.1f} GB/s (a copy of {} MiB, read and written)\n\n",
      place.device->name(), options.preset, options.batch, ceilings.flops_per_s / 1e12,
      options.product_size, ceilings.bytes_per_s / 1e9, options.copy_mb));
  PrintOut(fmt::format("{:<30}{:>10}{:>10}{:>12}{:>10}{:>10}{:>8}{:>10}{:>13}\n", "kernel", "us",
                       "floor us", "of ceiling", "bound by", "TFLOP/s", "GB/s", "per step",
                       "ms per step"));
  double step_seconds = 0, step_floor_seconds = 0;
  for (const KernelCase& test : cases) {
    ZG_ASSIGN_OR_RETURN(const double seconds, Bench(place, test).MedianSecondsPerCall());
    PrintOut(Row(test, seconds, ceilings));
    step_seconds += static_cast<double>(test.times_per_step) * seconds;
    step_floor_seconds += static_cast<double>(test.times_per_step) * ceilings.FloorSeconds(test);
  }
  PrintOut(fmt::format("\nthese kernels in a step: {:.2f} ms, floor {:.2f} ms\n",
                       1e3 * step_seconds, 1e3 * step_floor_seconds));
  return Status::Ok();
}

Status Run(const Options& options) {
  models::GptConfig config = models::FindGptPreset(options.preset)->config;
  config.vocabulary =
      options.vocabulary > 0 ? options.vocabulary : (config.vocabulary + 63) / 64 * 64;
  ZG_ASSIGN_OR_RETURN(const std::vector<KernelCase> all, GptKernelCases(config, options.batch));
  std::vector<KernelCase> cases;
  for (const KernelCase& test : all) {
    if (test.name.find(options.filter) != std::string::npos) cases.push_back(test);
  }
  if (cases.empty()) {
    return InvalidArgument("--filter: no kernel has '{}' in its name; --list shows them",
                           options.filter);
  }
  if (!options.list) return Measure(options, cases);
  PrintOut(List(cases));
  return Status::Ok();
}

int Main(int argc, char** argv) {
  RegisterAllOps();
  Options options;
  FlagParser parser("Measures the kernels of a GPT-2 training step on a GPU.");
  AddFlags(&parser, &options);
  const StatusOr<bool> wants_help = parser.Parse(argc, argv);
  if (wants_help.ok() && *wants_help) {
    PrintOut(parser.Help("cuda_kernel_bench"));
    return 0;
  }
  const Status status = wants_help.ok() ? Run(options) : wants_help.status();
  if (status.ok()) return 0;
  PrintError(fmt::format("error: {}\n", status.message()));
  return status.code() == StatusCode::kInvalidArgument ? 2 : 1;
}

}  // namespace
}  // namespace zg::bench

int main(int argc, char** argv) { return zg::bench::Main(argc, argv); }
