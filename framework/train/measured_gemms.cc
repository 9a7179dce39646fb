#include "framework/train/measured_gemms.h"

#include <spdlog/spdlog.h>

#include <map>
#include <utility>
#include <vector>

#include "framework/base/stopwatch.h"
#include "framework/kernels/device_kernels.h"
#include "framework/train/gemm_choices_file.h"

namespace zg {

MeasuredGemms::MeasuredGemms(std::string path, const KernelRegistry& kernels,
                             Communicator& communicator)
    : path_(std::move(path)),
      communicator_(communicator),
      device_(ArithmeticOf(communicator.device(), DType::kF32)),
      kernels_(kernels.WithGemmChoices(&choices_)) {}

StatusOr<std::shared_ptr<MeasuredGemms>> MeasuredGemms::Open(const std::string& path,
                                                             const KernelRegistry& kernels,
                                                             Communicator& communicator) {
  std::shared_ptr<MeasuredGemms> gemms(new MeasuredGemms(path, kernels, communicator));
  if (communicator.device().is_host()) {
    return InvalidArgument(
        "`gemm_choices`: got {}, but the ranks compute on the CPU, whose products have one order; "
        "leave it out, or give `device=cuda`",
        path);
  }
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> devices,
                      communicator.Exchange("compare devices", gemms->device_));
  for (size_t rank = 1; rank < devices.size(); ++rank) {
    if (devices[rank] == devices[0]) continue;
    return InvalidArgument(
        "`gemm_choices`: got {} on rank {}, but {} on rank 0, expected the same: one choice is for "
        "all; leave it out",
        devices[rank], rank, devices[0]);
  }
  StatusOr<ChoicesOfDevices> read = ChoicesOfDevices();
  if (communicator.rank() == 0) read = ReadGemmChoices(path);
  const ChoicesOfProducts mine = read.ok() ? (*read)[gemms->device_] : ChoicesOfProducts();
  ZG_RETURN_IF_ERROR(gemms->TakeFromRank0(read.status().WithContext("`gemm_choices`"), mine));
  return gemms;
}

Status MeasuredGemms::TakeFromRank0(const Status& mine, const ChoicesOfProducts& choices) {
  ZG_RETURN_IF_ERROR(ExchangeStatus(communicator_, "choose algorithms of products", mine));
  const bool is_source = communicator_.rank() == 0;
  ZG_ASSIGN_OR_RETURN(
      const std::vector<std::string> texts,
      communicator_.Exchange("algorithms of products",
                             is_source ? GemmChoicesAsJson({{device_, choices}}) : ""));
  ZG_ASSIGN_OR_RETURN(ChoicesOfDevices taken, ParseGemmChoices("rank 0's choices", texts[0]));
  choices_.Add(taken[device_]);
  return Status::Ok();
}

StatusOr<Program> MeasuredGemms::Compile(const std::function<StatusOr<Program>()>& compile) {
  ZG_ASSIGN_OR_RETURN(Program program, compile());
  // With other workspaces the compiler may choose differently, and so use other products.
  while (!choices_.missing().empty()) {
    ZG_RETURN_IF_ERROR(MeasureMissing());
    ZG_ASSIGN_OR_RETURN(program, compile());
  }
  return program;
}

Status MeasuredGemms::MeasureMissing() {
  StatusOr<ChoicesOfProducts> measured = ChoicesOfProducts();
  if (communicator_.rank() == 0) measured = MeasureHere();
  Status status = measured.status();
  if (status.ok() && communicator_.rank() == 0) {
    status = AddToGemmChoices(path_, device_, *measured);
  }
  return TakeFromRank0(status.WithContext("`gemm_choices`"),
                       measured.ok() ? *measured : ChoicesOfProducts());
}

StatusOr<ChoicesOfProducts> MeasuredGemms::MeasureHere() {
  const Stopwatch stopwatch;
  ChoicesOfProducts measured;
  for (const auto& [product, measure] : choices_.missing()) {
    StatusOr<GemmChoice> choice = measure(communicator_.device());
    if (!choice.ok()) return choice.status().WithContext(product);
    measured[product] = *std::move(choice);
  }
  spdlog::info("{}: {} products were measured in {:.1f} s", path_, measured.size(),
               stopwatch.ms() / 1e3);
  return measured;
}

Status MeasuredGemms::CheckComplete() const {
  if (choices_.missing().empty()) return Status::Ok();
  return FailedPrecondition(
      "`gemm_choices`: {} lacks {} products of the program on {}, such as {}; a run of the job "
      "measures them and adds them to it",
      path_, choices_.missing().size(), device_, choices_.missing().begin()->first);
}

}  // namespace zg
