// No text crashes the parser, and every text that it accepts can be printed, read again and
// verified: random mutations of a valid text, always the same ones.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "framework/ir/parser.h"
#include "framework/ir/printer.h"
#include "framework/ir/verifier.h"
#include "tests/ir/test_ops.h"

namespace zg {
namespace {

constexpr char kText[] = R"(graph "mlp" mesh(data=2, tensor=1) micro_batches=4
variables:
  %w: f32[3,4] {B,B} = variable (dtype="f32", shape=[3,4])  // hidden
  %bucket: f32[64] {S(0),B} = variable (dtype="f32", shape=[64])
    tensor "w" f32[4,8] at 0 init normal(0.02)
    tensor "b" f32[4] at 32 init zeros
  %g: f32[3] {B,B} = variable (dtype="f32", shape=[3])
forward:
  %x: f32[16,4] {S(0),B} = input (dtype="f32", name="x", shape=[16,4])
  %all: f32[64] {B,B} = all_gather %bucket
  %view: f32[4,8] {B,B} = bucket_view %all (offset=0, shape=[4,8])
  %y: f32[16,3] {S(0),B} = linear %x, %w  // hidden
  %n: f32[16,3] {S(0),B}, %n.1: f32[16] {S(0),B}, %n.2: f32[16] {S(0),B} = layer_norm %y, %g, %g
  %o: i64[2] {B,B} = test_options (count=7, dims=[1,2], flag=true, rate=1e-05, text="a \"b\" \x01")
backward:
  %c: f32[] {B,B} = constant (value=0.5)
update:
  %p: f32[64] {P,B} = bucket_pack %view, %g (offsets=[0,32], size=64)
  %r: f32[64] {S(0),B} = reduce_scatter %p
  assign %bucket, %r
  output %c (name="loss")
eval "predict":
  output %w (name="prediction")  // path
)";

std::string Mutate(std::string text, std::mt19937& random) {
  const auto below = [&](size_t bound) { return random() % bound; };
  const int num_changes = 1 + static_cast<int>(below(4));
  for (int change = 0; change < num_changes && !text.empty(); ++change) {
    const size_t at = below(text.size());
    switch (below(7)) {
      case 0:  // another byte
        text[at] = static_cast<char>(below(256));
        break;
      case 1:  // another byte of the text
        text[at] = text[below(text.size())];
        break;
      case 2:
        text.erase(at, 1 + below(8));
        break;
      case 3:  // a piece of the text, somewhere else
        text.insert(at, text.substr(below(text.size()), 1 + below(20)));
        break;
      case 4:
        text.resize(at);
        break;
      case 5: {  // another number
        const size_t digit = text.find_first_of("0123456789", at);
        const char* numbers[] = {"-1", "0", "1", "9223372036854775807", "4294967296", "1e308"};
        if (digit != std::string::npos) text.replace(digit, 1, numbers[below(6)]);
        break;
      }
      case 6: {  // a line less
        const size_t begin = text.rfind('\n', at);
        if (begin != std::string::npos) text.erase(begin, text.find('\n', begin + 1) - begin);
        break;
      }
    }
  }
  return text;
}

TEST(ParserMutationTest, MutatedTextGivesAGraphOrAnError) {
  RegisterTestOps();
  StatusOr<ir::Graph> original = ir::Parse(kText);
  ASSERT_TRUE(original.ok()) << original.status().message();
  EXPECT_EQ(Print(*original), kText);
  EXPECT_TRUE(ir::Verify(*original).ok()) << ir::Verify(*original).message();

  std::mt19937 random(20240229);
  int num_graphs = 0;
  int num_verified = 0;
  constexpr int kNumTexts = 15000;
  for (int i = 0; i < kNumTexts; ++i) {
    const std::string text = Mutate(kText, random);
    StatusOr<ir::Graph> graph = ir::Parse(text);
    if (!graph.ok()) {
      ASSERT_EQ(graph.status().message().rfind("graph:", 0), 0u) << graph.status().message();
      continue;
    }
    ++num_graphs;
    const std::string printed = ir::Print(*graph);
    StatusOr<ir::Graph> again = ir::Parse(printed);
    ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << text << "\n" << printed;
    ASSERT_EQ(Print(*again), printed);
    for (bool collectives_inserted : {false, true}) {
      if (ir::Verify(*graph, {collectives_inserted}).ok()) ++num_verified;
    }
  }
  // The mutations are neither all harmless nor all fatal.
  EXPECT_GT(num_graphs, kNumTexts / 50);
  EXPECT_LT(num_graphs, kNumTexts / 2);
  EXPECT_GT(num_verified, 0);
}

}  // namespace
}  // namespace zg
