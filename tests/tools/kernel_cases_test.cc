// The kernels of the GPU benchmark are those of the compiled training step.
#include "tools/bench/gpu/kernel_cases.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/kernels/cuda/cuda_kernels.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "framework/runtime/plan_program.h"
#include "models/gpt/presets.h"
#include "tools/plan/model_graph.h"
#include "zero/compile.h"

namespace zg::bench {
namespace {

// Not measured: they move nothing, or one number, or data that the memory plan puts in place.
const std::set<std::string>& LeftOut() {
  static const auto& ops = *new std::set<std::string>{
      "accumulate", "assign", "bucket_pack", "bucket_view", "constant", "input", "output", "scale"};
  return ops;
}

// Ops on a bucket, whose size is not that of the parameters alone.
bool IsOverBucket(const std::string& op) { return op == "adam_update"; }

std::string Describe(const ir::OpCall& call) {
  std::string text = call.op->name;
  if (IsOverBucket(text)) return text;
  for (const TensorType& type : call.inputs) text += " " + type.ToString();
  return text;
}

std::map<std::string, int64_t> OpsOfStep(const ir::Graph& graph) {
  std::map<std::string, int64_t> counts;
  for (const ir::SectionKind kind :
       {ir::SectionKind::kForward, ir::SectionKind::kBackward, ir::SectionKind::kUpdate}) {
    for (const ir::Node* node : graph.section(kind)->nodes) {
      if (LeftOut().count(node->op->name) == 0) {
        ++counts[Describe(node->LocalCall(graph.mesh()))];
      }
    }
  }
  return counts;
}

std::map<std::string, int64_t> OpsOfCases(const std::vector<KernelCase>& cases) {
  std::map<std::string, int64_t> counts;
  for (const KernelCase& test : cases) {
    if (test.times_per_step > 0) counts[Describe(test.spec.call)] += test.times_per_step;
  }
  return counts;
}

TEST(KernelCases, AreTheKernelsOfTheCompiledStep) {
  RegisterAllOps();
  plan::PlanOptions options;
  options.layers = 3;
  options.heads = 2;
  options.channels = 32;
  options.context = 16;
  options.vocabulary = 64;
  options.batch = 2;
  options.compile.micro_batches = 1;
  options.compile.dtype = DType::kBF16;
  Graph graph("gpt");
  ASSERT_TRUE(plan::TraceModel(options, &graph).ok());
  const StatusOr<Program> program =
      zero::Compile(graph, Mesh::DataParallel(1), graph.config(), TargetOf(CpuKernels()));
  ASSERT_TRUE(program.ok()) << program.status().message();
  models::GptConfig config;
  config.layers = options.layers;
  config.heads = options.heads;
  config.channels = options.channels;
  config.context = options.context;
  config.vocabulary = options.vocabulary;
  const auto cases = GptKernelCases(config, options.batch);
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  EXPECT_EQ(OpsOfCases(*cases), OpsOfStep(program->graph));
}

TEST(KernelCases, HaveKernelsOnBothDevices) {
  RegisterAllOps();
  const bool has_toolkit = CudaKernels().Has("linear");
  const auto cases = GptKernelCases(models::FindGptPreset("gpt2")->config, 16);
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  for (const KernelCase& test : *cases) {
    EXPECT_TRUE(CpuKernels().Make(test.spec).ok()) << test.name;
    // Making one of products needs a GPU.
    EXPECT_EQ(CudaKernels().Has(test.spec.call.op->name), has_toolkit) << test.name;
  }
}

TEST(KernelCases, CountBytesAndOperations) {
  RegisterAllOps();
  const auto product = SquareProduct(128);
  ASSERT_TRUE(product.ok());
  EXPECT_EQ(product->flops, 2 * 128 * 128 * 128);
  EXPECT_EQ(product->moved_bytes, 3 * 128 * 128 * 2);
  models::GptConfig config;
  config.vocabulary = 1 << 20;
  const auto cases = GptKernelCases(config, 1);
  ASSERT_TRUE(cases.ok());
  for (const KernelCase& test : *cases) {
    const int64_t parameters = models::NumGptParameters(config);
    const int64_t ids = config.context;
    // f32: parameter and two moments, read and written; the gradient and the new parameter in bf16.
    if (test.name == "adam_update") {
      EXPECT_EQ(test.moved_bytes, (6 * 4 + 2 + 2) * parameters);
    }
    // The rows that are read, not the table.
    if (test.name == "embedding") {
      EXPECT_EQ(test.moved_bytes, ids * (8 + 2 * 2 * 384));
    }
  }
}

TEST(KernelCases, NameWhatAnOpRejects) {
  RegisterAllOps();
  models::GptConfig config;
  config.heads = 7;
  const Status status = GptKernelCases(config, 1).status();
  EXPECT_NE(status.message().find("does not divide into 3 x 7 heads"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace zg::bench
