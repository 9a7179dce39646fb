#include "framework/eager/node_kernels.h"

#include <gtest/gtest.h>

#include <vector>

#include "framework/ir/builder.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/ops/register_all_ops.h"

namespace zg::eager {
namespace {

// Attributes that always change, such as a learning rate, need no more than a number of kernels; those
// that are called now and then stay.
TEST(NodeKernels, KeepsABoundedNumberOfKernels) {
  RegisterAllOps();
  ir::Graph graph("g");
  ir::Section* const section = graph.section(ir::SectionKind::kForward);
  ir::Builder builder(&graph, section);
  ir::Value* const x = builder.Op(
      "input", {}, {{"name", std::string("x")}, {"dtype", DType::kF32}, {"shape", Shape{2}}});
  NodeKernels kernels(&CpuKernels(1), &CpuDevice(), /*most_kernels=*/4);
  MemoryPool pool(&CpuDevice());
  const std::vector<float> in = {1.0f, 2.0f};
  const auto run = [&](double factor) {
    std::vector<float> out(2);
    const ir::Node& node = *builder.Op("scale", {x}, {{"factor", factor}})->producer;
    const Status status = kernels.Run(node, {in.data()}, {out.data()}, &pool);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(out,
              (std::vector<float>{static_cast<float>(factor), 2 * static_cast<float>(factor)}));
  };
  for (int i = 0; i < 20; ++i) {
    run(i);
    run(0.5);
    EXPECT_LE(kernels.num_kernels(), 4);
  }
  EXPECT_EQ(kernels.num_kernels(), 4);
  EXPECT_EQ(kernels.num_made(), 21);  // that of 0.5 once
}

}  // namespace
}  // namespace zg::eager
