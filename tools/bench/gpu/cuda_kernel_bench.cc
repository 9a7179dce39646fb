// The kernels of a GPT-2 training step in bf16 on a GPU, each compared with its lower bound: the
// time of its matrix products at the peak, or of its bytes at the bandwidth, whichever is longer.
// Both limits are measured in the same run: the peak with our own `linear` on large squares, the
// bandwidth with a copy within the device.
//
//   bazel run -c opt //tools/bench/gpu:cuda_kernel_bench -- --batch 16 --filter linear
//   bazel run -c opt //tools/bench/gpu:cuda_kernel_bench -- --batch 32 --list --json /tmp/work.json
//
// The second needs no GPU: its output is the input of tools/bench/estimate_gpu_step.py.
//
// A case cycles through more memory than caches hold. Its calls are recorded and replayed, so that
// launches cost nothing.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/base/format.h"
#include "framework/device/cuda_device.h"
#include "framework/device/device.h"
#include "framework/io/atomic_file.h"
#include "framework/job/console.h"
#include "framework/job/flag_parser.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/kernels/cuda/cuda_kernels.h"
#include "framework/ops/register_all_ops.h"
#include "models/gpt/presets.h"
#include "tools/bench/gpu/kernel_cases.h"
#include "tools/bench/gpu/kernel_timer.h"

namespace zg::bench {
namespace {

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
  std::string json;
};

void AddFlags(FlagParser* parser, Options* options) {
  parser->add_choice("device", &options->device, {"cuda", "cpu"}, "cpu: to try this program");
  parser->add_choice("preset", &options->preset, {"gpt2", "mini"}, "sizes of the model");
  parser->add_int("batch", &options->batch, at_least(1), "samples per micro-batch");
  parser->add_int("vocab", &options->vocabulary, at_least(0),
                  "0: the preset's, up to the next multiple of 64");
  parser->add_int("product-size", &options->product_size, at_least(1),
                  "rows and columns of the matrices that show the peak");
  parser->add_int("copy-mb", &options->copy_mb, at_least(1),
                  "of the copy that shows the bandwidth, in units of 2^20 bytes");
  parser->add_int(
      "cold-mb", &options->cold_mb, at_least(0),
      "a kernel goes through so much memory, in units of 2^20 bytes, before it comes back");
  parser->add_string("filter", &options->filter, "only kernels whose name has this");
  parser->add_bool("list", &options->list, "the kernels and their sizes; needs no GPU");
  parser->add_string("json", &options->json, "also write the table here", "FILE");
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

StatusOr<Ceilings> MeasureCeilings(const Place& place, const Options& options) {
  Ceilings ceilings;
  ZG_ASSIGN_OR_RETURN(const KernelCase product, SquareProduct(options.product_size));
  ZG_ASSIGN_OR_RETURN(const double product_seconds, MedianKernelSeconds(place, product));
  ceilings.flops_per_s = static_cast<double>(product.flops) / product_seconds;
  Device& device = *place.device;
  const int64_t bytes = options.copy_mb << 20;
  ZG_ASSIGN_OR_RETURN(const DeviceBytes from, device.Allocate(bytes));
  ZG_ASSIGN_OR_RETURN(const DeviceBytes to, device.Allocate(bytes));
  const auto copy = [&] { return device.Copy(to.get(), from.get(), bytes); };
  ZG_ASSIGN_OR_RETURN(const double copy_seconds, MedianSeconds(device, copy, /*records=*/false));
  ceilings.bytes_per_s = 2 * static_cast<double>(bytes) / copy_seconds;  // read and written
  return ceilings;
}

using Json = nlohmann::ordered_json;

Json JsonOf(const KernelCase& test) {
  return {{"name", test.name},
          {"op", test.spec.call.op->name},
          {"times_per_step", test.times_per_step},
          {"flops", test.flops},
          {"moved_bytes", test.moved_bytes}};
}

Json JsonOf(const models::GptConfig& config, int64_t batch) {
  return {{"layers", config.layers},         {"heads", config.heads},
          {"channels", config.channels},     {"context", config.context},
          {"vocabulary", config.vocabulary}, {"batch", batch}};
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

// Prints the table, and adds its numbers to the result.
Status Measure(const Options& options, const std::vector<KernelCase>& cases, Json* result) {
  Place place = {&CpuDevice(), &CpuKernels(), options.cold_mb << 20};
  std::unique_ptr<Device> gpu;
  if (options.device == "cuda") {
    ZG_ASSIGN_OR_RETURN(gpu, OpenCudaDevice(0));
    place.device = gpu.get();
    place.kernels = &CudaKernels();
  }
  ZG_ASSIGN_OR_RETURN(const Ceilings ceilings, MeasureCeilings(place, options));
  print_out(fmt::format(
      "{}: {}, micro-batch {}, bf16\nceilings: {:.1f} TFLOP/s (products of {} rows and columns), "
      "{:.1f} GB/s (a copy of {} MiB, read and written)\n\n",
      place.device->name(), options.preset, options.batch, ceilings.flops_per_s / 1e12,
      options.product_size, ceilings.bytes_per_s / 1e9, options.copy_mb));
  print_out(fmt::format("{:<30}{:>10}{:>10}{:>12}{:>10}{:>10}{:>8}{:>10}{:>13}\n", "kernel", "us",
                        "floor us", "of ceiling", "bound by", "TFLOP/s", "GB/s", "per step",
                        "ms per step"));
  (*result)["device"] = place.device->name();
  (*result)["ceilings"] = {{"flops_per_s", ceilings.flops_per_s},
                           {"bytes_per_s", ceilings.bytes_per_s}};
  double step_seconds = 0, step_floor_seconds = 0;
  for (const KernelCase& test : cases) {
    ZG_ASSIGN_OR_RETURN(const double seconds, MedianKernelSeconds(place, test));
    print_out(Row(test, seconds, ceilings));
    Json row = JsonOf(test);
    row["seconds"] = seconds;
    (*result)["kernels"].push_back(row);
    step_seconds += static_cast<double>(test.times_per_step) * seconds;
    step_floor_seconds += static_cast<double>(test.times_per_step) * ceilings.FloorSeconds(test);
  }
  print_out(fmt::format("\nthese kernels in a step: {:.2f} ms, floor {:.2f} ms\n",
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
  Json result = {{"sizes", JsonOf(config, options.batch)}, {"kernels", Json::array()}};
  if (options.list) {
    print_out(List(cases));
    for (const KernelCase& test : cases) result["kernels"].push_back(JsonOf(test));
  } else {
    ZG_RETURN_IF_ERROR(Measure(options, cases, &result));
  }
  if (options.json.empty()) return Status::Ok();
  return WriteFileAtomically(options.json, result.dump(1) + "\n");
}

int Main(int argc, char** argv) {
  RegisterAllOps();
  Options options;
  FlagParser parser("Measures the kernels of a GPT-2 training step on a GPU.");
  AddFlags(&parser, &options);
  const StatusOr<bool> wants_help = parser.parse(argc, argv);
  if (wants_help.ok() && *wants_help) {
    print_out(parser.help("cuda_kernel_bench"));
    return 0;
  }
  const Status status = wants_help.ok() ? Run(options) : wants_help.status();
  if (status.ok()) return 0;
  print_error(fmt::format("error: {}\n", status.message()));
  return status.code() == StatusCode::kInvalidArgument ? 2 : 1;
}

}  // namespace
}  // namespace zg::bench

int main(int argc, char** argv) { return zg::bench::Main(argc, argv); }
