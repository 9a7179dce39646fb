#include "framework/job/compile_flags.h"

namespace zg {
namespace {

constexpr double kMaxBucketMb = 1 << 20;

}  // namespace

void AddCompileFlags(FlagParser* flags, CompileOptions* options) {
  flags->Section("ZeRO");
  flags->AddInt("zero", &options->zero.stage, Between(0, 3),
                "shard nothing (0), optimizer state (1), also gradients (2), also parameters (3)",
                "STAGE");
  flags->AddMebibytes("bucket-mb", &options->zero.bucket_bytes,
                      {0, kMaxBucketMb, /*without_min=*/true},
                      "parameters per collective, in units of 2^20 bytes");
  flags->AddInt("shard-min-elements", &options->zero.shard_min_elements, AtLeast(0),
                "smaller parameters stay whole on every rank");
  flags->AddBool("update-early", &options->update_early,
                 "update parameters during backward, when their gradients are complete");

  flags->Section("Step");
  flags->AddInt("micro-batches", &options->micro_batches, AtLeast(0),
                "micro-batches per step over all ranks; 0 for one per rank");
  flags->AddEnum("reduce-every", &options->reduce_every,
                 "when gradients are summed over the ranks");
  flags->AddStrings("recompute", &options->recompute,
                    "modules whose activations backward computes again, such as 'blocks.*'",
                    "PATTERN");
  flags->AddChoice(
      "dtype", {"f32", "bf16", "f16"},
      [options](const std::string& text) { options->dtype = ParseDType(text).value(); },
      [options] { return std::string(DTypeName(options->dtype)); }, "what is computed in");
  flags->AddDouble("clip-norm", &options->max_grad_norm, AtLeast(0),
                   "largest norm of a step's gradients together; 0: any");
  flags->AddEnum("on-non-finite", &options->on_non_finite,
                 "when a loss or gradient is infinite or NaN; skip takes a norm");
  flags->AddString("print-ir", &options->dump_directory,
                   "write the graph after every compiler pass", "DIR");
}

Status ResolveCompileFlags(const FlagParser& flags, int num_ranks, CompileOptions* options) {
  if (options->dtype == DType::kF16 && flags.IsGiven("on-non-finite")) {
    return InvalidArgument(
        "--on-non-finite: got '{}', but with --dtype f16 the loss scaler leaves out updates that "
        "are not finite; leave the flag out",
        EnumName(options->on_non_finite));
  }
  if (options->micro_batches == 0) options->micro_batches = num_ranks;
  if (options->micro_batches % num_ranks != 0) {
    return InvalidArgument(
        "--micro-batches: got {}, expected a multiple of the {} ranks: every rank computes the "
        "same number per step",
        options->micro_batches, num_ranks);
  }
  return Status::Ok();
}

}  // namespace zg
