// For every compute op and every placement it declares: cuts the inputs for 2 and 3 virtual ranks,
// runs each part, joins the outputs, and compares them with the whole.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/ops/op_suite.h"
#include "tests/testing/interpreter.h"
#include "tests/testing/virtual_ranks.h"

namespace zg::testing {
namespace {

using OpPlacementTest = OpSuite;
ZG_INSTANTIATE_OP_SUITE(OpPlacementTest);

std::string Text(const ir::SbpSignature& signature) {
  return fmt::format("{} -> {}", ToString(signature.inputs), ToString(signature.outputs));
}

bool HasPartial(const ir::SbpSignature& signature) {
  const auto is_partial = [](Sbp sbp) { return sbp.is_partial(); };
  return std::any_of(signature.inputs.begin(), signature.inputs.end(), is_partial) ||
         std::any_of(signature.outputs.begin(), signature.outputs.end(), is_partial);
}

// The results of one rank from its parts.
struct RankResult {
  std::vector<HeapTensor> inputs;
  StepContext step;
  std::vector<HeapTensor> outputs;
};

bool InputsDivide(const ir::OpCall& call, const ir::SbpSignature& signature, int num_ranks) {
  if (signature.units % num_ranks != 0) return false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!Divides(call.inputs[i].shape, signature.inputs[i], num_ranks)) return false;
  }
  return true;
}

// Whether rank r computes micro-batch r; with operands that say which part each rank has, all ranks
// compute the same one.
bool PartsAreMicroBatches(const OpCase& op_case, const ir::SbpSignature& signature) {
  return op_case.parts_are_micro_batches &&
         (signature.inputs.size() < 2 || !signature.inputs.back().is_split() ||
          !op_case.attributes.Has("parts"));
}

std::vector<RankResult> RunRanks(const ConcreteCase& concrete, const ir::SbpSignature& signature,
                                 int num_ranks) {
  std::mt19937 random(7);
  std::vector<RankResult> ranks(num_ranks);
  const std::vector<HeapTensor> inputs = concrete.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<HeapTensor> parts = Cut(inputs[i], signature.inputs[i], num_ranks, &random);
    for (int rank = 0; rank < num_ranks; ++rank) ranks[rank].inputs.push_back(parts[rank]);
  }
  for (int rank = 0; rank < num_ranks; ++rank) {
    RankResult& result = ranks[rank];
    ir::OpCall call = concrete.call();
    for (size_t i = 0; i < inputs.size(); ++i) call.inputs[i] = result.inputs[i].type();
    if (call.op->localize != nullptr) call.op->localize(concrete.call(), &call);
    result.step = SuiteStep();
    if (PartsAreMicroBatches(concrete.op_case(), signature)) result.step.micro_batch = rank;
    std::vector<HeapTensor> copies;
    for (const HeapTensor& input : result.inputs) copies.push_back(input.Clone());
    const int64_t part = signature.inputs[0] == Sbp::S(0) ? rank : 0;
    StatusOr<std::vector<HeapTensor>> outputs = Execute(Kernels(), call, copies, result.step, part);
    if (!outputs.ok()) {
      ADD_FAILURE() << "rank " << rank << ": " << outputs.status().ToString();
      return {};
    }
    result.outputs = *outputs;
  }
  return ranks;
}

void CompareJoined(const OpCase& op_case, const std::vector<RankResult>& ranks,
                   const ir::SbpSignature& signature, const std::vector<HeapTensor>& whole) {
  const bool exact = op_case.exact_splits && !HasPartial(signature);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<HeapTensor> parts;
    for (const RankResult& rank : ranks) parts.push_back(rank.outputs[i]);
    const StatusOr<HeapTensor> joined = Join(parts, signature.outputs[i]);
    ASSERT_TRUE(joined.ok()) << joined.status().ToString();
    ASSERT_EQ(joined->type(), whole[i].type()) << "output " << i;
    EXPECT_TRUE(IsClose(joined->ToDoubles(), whole[i].ToDoubles(), 2 * op_case.tolerance))
        << "output " << i;
    EXPECT_TRUE(!exact || SameBits(*joined, whole[i])) << "output " << i << ": other bits";
  }
}

// For ops whose result depends on the micro-batch: compares each part with the reference for its
// micro-batch. Only a cut of the first operand along dim 0 gives ranks whole micro-batches.
void CompareEachPart(const OpCase& op_case, const ConcreteCase& concrete,
                     const ir::SbpSignature& signature, const std::vector<RankResult>& ranks) {
  EXPECT_EQ(signature.inputs[0], Sbp::S(0)) << Text(signature);
  for (const RankResult& rank : ranks) {
    const ReferenceOutputs expected = concrete.Reference(rank.inputs, rank.step);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(IsClose(rank.outputs[i].ToDoubles(), expected[i], op_case.tolerance));
    }
  }
}

TEST_P(OpPlacementTest, PartsMakeTheWhole) {
  if (op().sbp_signatures == nullptr) return;
  std::set<std::string> declared;
  std::map<int, std::set<std::string>> tried;  // by number of ranks
  for (const OpCase* op_case : CasesOf(op().name)) {
    const ConcreteCase concrete(*op_case);
    const std::vector<HeapTensor> whole = concrete.Run(concrete.inputs());
    for (const ir::SbpSignature& signature : op().sbp_signatures(concrete.call())) {
      declared.insert(Text(signature));
      ASSERT_EQ(signature.inputs.size(), op_case->inputs.size()) << Text(signature);
      ASSERT_EQ(signature.outputs.size(), whole.size()) << Text(signature);
      for (int num_ranks : {2, 3}) {
        if (!InputsDivide(concrete.call(), signature, num_ranks)) continue;
        SCOPED_TRACE(fmt::format("{}, {} ranks, {}", op_case->label, num_ranks, Text(signature)));
        tried[num_ranks].insert(Text(signature));
        const std::vector<RankResult> ranks = RunRanks(concrete, signature, num_ranks);
        if (ranks.empty()) continue;
        if (PartsAreMicroBatches(*op_case, signature)) {
          CompareEachPart(*op_case, concrete, signature, ranks);
        } else {
          CompareJoined(*op_case, ranks, signature, whole);
        }
      }
    }
  }
  EXPECT_EQ(tried[2], declared) << "placements that no case can cut for 2 ranks";
  EXPECT_EQ(tried[3], declared) << "placements that no case can cut for 3 ranks";
}

}  // namespace
}  // namespace zg::testing
