#include "framework/job/compile_flags.h"

#include <memory>
#include <string>
#include <string_view>

#include "framework/base/byte_size.h"
#include "framework/io/mapped_file.h"
#include "framework/job/mesh_axes.h"

namespace zg {
namespace {

constexpr double kMaxBucketMb = 1 << 20;

// `others`, with a comma after each, are what else the flag takes.
StatusOr<int64_t> ParseLimit(const std::string& text, std::string_view others) {
  if (text == "unlimited") return CompileOptions::kUnlimitedBytes;
  const StatusOr<int64_t> bytes = ParseByteSize("limit", text);
  if (bytes.ok()) return bytes;
  return InvalidArgument("got '{}', expected {}unlimited, or bytes such as 500M, 8G or 8GiB", text,
                         others);
}

std::string LimitText(int64_t bytes) {
  return bytes == CompileOptions::kUnlimitedBytes ? "unlimited" : std::to_string(bytes);
}

StatusOr<int64_t> ParseOverlap(const std::string& text) {
  if (text == "off") return 0;
  if (text == "auto") return CompileOptions::kAuto;
  return ParseLimit(text, "off, auto, ");
}

std::string OverlapText(int64_t bytes) {
  if (bytes == 0) return "off";
  return bytes == CompileOptions::kAuto ? "auto" : LimitText(bytes);
}

}  // namespace

void AddCompileFlags(FlagParser* flags, CompileOptions* options) {
  const auto placement_file = std::make_shared<std::string>();
  flags->section("ZeRO");
  flags->add_parsed(
      "mesh",
      [options](const std::string& text) -> Status {
        ZG_ASSIGN_OR_RETURN(options->mesh, ParseMeshAxes(text));
        return Status::Ok();
      },
      [options] { return Mesh(options->mesh).ToString(); },
      "the ranks as a grid, such as replica=2,shard=4 or tensor=2/4; default: all along data",
      "AXES");
  flags->add_parsed(
      "placement",
      [options, placement_file](const std::string& path) -> Status {
        const StatusOr<MappedFile> file = MappedFile::Open(path);
        if (!file.ok()) return InvalidArgument(file.status().message());
        const std::string_view text(reinterpret_cast<const char*>(file->data()), file->size());
        StatusOr<std::vector<PlacementRule>> rules = ParsePlacementRules(text);
        if (!rules.ok()) return rules.status().WithContext(path);
        options->placement = std::move(*rules);
        *placement_file = path;
        return Status::Ok();
      },
      [placement_file] { return *placement_file; },
      "rules for parameters along the mesh axis tensor, a line each: blocks.*.mlp.up tensor=S(0)",
      "FILE");
  flags->add_parsed(
      "zero",
      [options](const std::string& text) -> Status {
        ZG_ASSIGN_OR_RETURN(Stages stages, ParseStages(text));
        options->zero.stage = stages.otherwise;
        options->zero.stage_rules = std::move(stages.rules);
        return Status::Ok();
      },
      [options]() -> FlagValue {
        if (options->zero.stage_rules.empty()) return int64_t{options->zero.stage};
        return options->zero.stages_text();
      },
      "shard nothing (0), optimizer state (1), also gradients (2), all (3); or 2,blocks.*=3",
      "STAGE");
  flags->add_string("secondary-shards", &options->zero.secondary_axis,
                    "mesh axis along which backward gathers parameters, from parts kept in forward",
                    "AXIS");
  flags->add_mebibytes("bucket-mb", &options->zero.bucket_bytes,
                       {0, kMaxBucketMb, /*without_min=*/true},
                       "parameters per collective, in units of 2^20 bytes");
  flags->add_int("shard-min-elements", &options->zero.shard_min_elements, at_least(0),
                 "smaller parameters stay whole on every rank");
  flags->add_enum("partition", &options->zero.partition,
                  "cut buckets evenly, or between whole tensors, which ranks then own");
  flags->add_bool("round-frozen", &options->round_frozen,
                  "keep parameters that are not trained in the 16 bits of --dtype");
  flags->add_bool("update-early", &options->update_early,
                  "update parameters during backward, when their gradients are complete");

  flags->add_parsed(
      "overlap",
      [options](const std::string& text) -> Status {
        ZG_ASSIGN_OR_RETURN(options->overlap_bytes, ParseOverlap(text));
        return Status::Ok();
      },
      [options] { return OverlapText(options->overlap_bytes); },
      "collectives beside computation, for at most so many BYTES of buffers", "off|auto|BYTES");
  flags->add_parsed(
      "max-memory",
      [options](const std::string& text) -> Status {
        ZG_ASSIGN_OR_RETURN(options->max_memory_bytes, ParseLimit(text, ""));
        return Status::Ok();
      },
      [options] { return LimitText(options->max_memory_bytes); },
      "a program that needs more per rank is an error; limits --overlap auto", "BYTES");

  flags->section("Step");
  flags->add_int("micro-batches", &options->micro_batches, at_least(0),
                 "micro-batches per step over all ranks; 0 for one per rank");
  flags->add_enum("reduce-every", &options->reduce_every,
                  "when gradients are summed over the ranks");
  flags->add_strings("recompute", &options->recompute,
                     "modules whose activations backward computes again, such as 'blocks.*'",
                     "PATTERN");
  flags->add_choice(
      "dtype", {"f32", "bf16", "f16"},
      [options](const std::string& text) { options->dtype = ParseDType(text).value(); },
      [options] { return std::string(DTypeName(options->dtype)); }, "what is computed in");
  flags->add_strings("f32-modules", &options->f32_modules,
                     "modules that compute in f32 all the same, such as '**.norm'", "PATTERN");
  flags->add_double("clip-norm", &options->max_grad_norm, at_least(0),
                    "largest norm of a step's gradients together; 0: any");
  flags->add_enum("on-non-finite", &options->on_non_finite,
                  "when a loss or gradient is infinite or NaN; skip takes a norm");
  flags->add_string("print-ir", &options->dump_directory,
                    "write the graph after every compiler pass", "DIR");
}

std::vector<ResolvedFlag> CompileFlagsOf(CompileOptions options) {
  FlagParser table("");
  AddCompileFlags(&table, &options);
  return table.resolved();
}

CompileOptions WithGivenCompileFlags(const FlagParser& flags, CompileOptions options) {
  FlagParser table("");
  AddCompileFlags(&table, &options);
  flags.copy_given_to(&table);
  return options;
}

std::string GivenCompileFlags(const FlagParser& flags) {
  CompileOptions unused;
  FlagParser table("");
  AddCompileFlags(&table, &unused);
  flags.copy_given_to(&table);
  return table.given();
}

void TakeRanksOfMesh(const FlagParser& flags, const CompileOptions& options, int* ranks) {
  if (flags.is_given("mesh") && !flags.is_given("ranks")) *ranks = Mesh(options.mesh).num_ranks();
}

Status ResolveCompileFlags(const FlagParser& flags, int num_ranks, CompileOptions* options) {
  if (options->dtype == DType::kF16 && flags.is_given("on-non-finite")) {
    return InvalidArgument(
        "--on-non-finite: got '{}', but with --dtype f16 the loss scaler leaves out updates that "
        "are not finite; leave the flag out",
        EnumName(options->on_non_finite));
  }
  const Mesh mesh = options->MeshOf(num_ranks);
  if (mesh.num_ranks() != num_ranks) {
    return InvalidArgument("{}: got {}, which are {} ranks, but the job has {}; give --ranks {}",
                           flags.is_given("mesh") ? "--mesh" : "graph.config().mesh",
                           mesh.ToString(), mesh.num_ranks(), num_ranks, mesh.num_ranks());
  }
  if (options->micro_batches == 0) options->micro_batches = mesh.num_data_ranks();
  if (options->micro_batches % mesh.num_data_ranks() != 0) {
    return InvalidArgument(
        "--micro-batches: got {}, expected a multiple of the {} ranks: every rank computes the "
        "same number per step",
        options->micro_batches, mesh.num_data_ranks());
  }
  return Status::Ok();
}

}  // namespace zg
