// Times of a plan from a profile of runs on a clock that only the kernels advance.

#include "framework/plan/price_list.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>

#include "framework/comm/in_process.h"
#include "framework/job/report.h"
#include "framework/kernels/kernel.h"
#include "framework/plan/text_report.h"
#include "framework/plan/time_estimate.h"
#include "framework/runtime/executor.h"
#include "tests/testing/parse_or_die.h"
#include "tools/plan/planned_model.h"

namespace zg::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ParseOrDie;

constexpr int64_t kUs = 1000;

thread_local int64_t now_ns = 0;  // of a rank
int64_t FakeNow() { return now_ns; }

// Takes a time that depends on its op and its types, and computes nothing.
class FakeKernel : public Kernel {
 public:
  explicit FakeKernel(const KernelSpec& spec) : is_linear_(spec.call.op->name == "linear") {
    for (const TensorType& input : spec.call.inputs) elements_ += input.shape.num_elements();
  }
  Status Run(const KernelArguments&) override {
    now_ns += elements_ * (is_linear_ ? 7 : 3) * kUs + 11 * kUs;
    return Status::Ok();
  }

 private:
  bool is_linear_;
  int64_t elements_ = 0;
};

KernelRegistry FakeKernels() {
  KernelRegistry registry;
  for (const char* op : {"linear", "relu"}) {
    registry.Register(op, [](const KernelSpec& spec) -> StatusOr<std::unique_ptr<Kernel>> {
      return std::unique_ptr<Kernel>(new FakeKernel(spec));
    });
  }
  return registry;
}

// Two micro-batches per rank; linear with two kinds of weights, relu in all sections.
std::string ProgramOn(int ranks) {
  return fmt::format(R"(graph "g" mesh(data={0}) micro_batches={1}
variables:
  %w: f32[8,8] {{B}} = variable (dtype="f32", shape=[8,8])
    tensor "w" f32[8,8] at 0 init zeros
  %v: f32[2,8] {{B}} = variable (dtype="f32", shape=[2,8])
    tensor "v" f32[2,8] at 0 init zeros
forward:
  %x: f32[{2},8] {{S(0)}} = input (dtype="f32", name="x", shape=[{2},8])
  %h: f32[{2},8] {{S(0)}} = linear %x, %w
  %r: f32[{2},8] {{S(0)}} = relu %h
  %y: f32[{2},8] {{S(0)}} = linear %r, %w
  %z: f32[{2},2] {{S(0)}} = linear %y, %v
backward:
  %b: f32[8,8] {{B}} = relu %w
update:
  %w.next: f32[8,8] {{B}} = relu %w
)",
                     ranks, 2 * ranks, 4 * ranks);
}

// Setting the inputs of a micro-batch takes half a millisecond.
StatusOr<Profile> ProfileOn(int ranks) {
  Profile profile;
  const Status status = RunRanks(ranks, [&](Communicator& communicator) -> Status {
    const ir::Graph graph = ParseOrDie(ProgramOn(ranks));
    ExecutorOptions options;
    options.profile_clock = FakeNow;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                        Executor::Create(&graph, FakeKernels(), &communicator, options));
    const std::vector<float> x(4 * 8);
    for (int step = 1; step <= 3; ++step) {
      ZG_RETURN_IF_ERROR(executor->RunStep(step, 1.0, [&](int64_t) {
        now_ns += 500 * kUs;
        return executor->SetInput("", "x", DType::kF32, x.data(), x.size() * sizeof(float));
      }));
    }
    if (communicator.rank() == 0) profile = executor->profile().value();
    return Status::Ok();
  });
  ZG_RETURN_IF_ERROR(status);
  return profile;
}

// The times of the fake kernels: linear of 4 x 8 rows by w, by w again, by v; relus.
constexpr double kMsOfMicroBatch =
    (2 * (7 * (32 + 64) + 11) + (7 * (32 + 16) + 11) + (3 * 32 + 11) + (3 * 64 + 11)) / 1e3;
constexpr double kMsOfStep = 2 * (kMsOfMicroBatch + 0.5) + (3 * 64 + 11) / 1e3;

TEST(PriceList, GivesTheStepThatWasMeasured) {
  for (const int ranks : {1, 2}) {
    const StatusOr<Profile> profile = ProfileOn(ranks);
    ASSERT_TRUE(profile.ok()) << profile.status().message();
    EXPECT_NEAR(profile->step_ms, kMsOfStep, 1e-9);
    Machine machine;
    machine.prices = std::make_shared<PriceList>(*profile, "p.json");
    // On the same number of ranks, and on others with the same number of rows each.
    for (const int other : {1, 2, 5}) {
      const PricedComputation priced = PriceComputation(ParseOrDie(ProgramOn(other)), machine);
      EXPECT_NEAR(priced.compute_ms + priced.between_ms, kMsOfStep, 1e-9) << ranks << " " << other;
      EXPECT_NEAR(priced.between_ms, 2 * 0.5, 1e-9);
      EXPECT_EQ(priced.same_types_ms, priced.compute_ms);
      EXPECT_TRUE(priced.unpriced.empty());
    }
  }
}

// 4 ms for two relus of 100 elements in forward, 100 times as fast in update; all_gather has no
// flops.
Profile SmallProfile() {
  Profile profile = {3, true, 10, 0, {}};
  profile.calls = {{"relu", "forward", "f32[100] -> f32[100]", 2, 4, 200, 1600},
                   {"relu", "update", "f32[100] -> f32[100]", 1, 0.02, 100, 800},
                   {"concat", "backward", "f32[10] -> f32[10]", 1, 0.98, 0, 80},
                   {"all_gather", "forward", "f32[100] -> f32[100]", 1, 4, 0, 800}};
  return profile;
}

TEST(PriceList, GoesByRateWhereTypesDiffer) {
  const PriceList prices(SmallProfile(), "p.json");
  const ir::Graph graph = ParseOrDie(R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %p: f32[600] {S(0)} = variable (dtype="f32", shape=[600])
forward:
  %x: f32[100] {B} = input (dtype="f32", name="x", placement="B", shape=[100])
  %a: f32[100] {B} = relu %x
  %b: f32[600] {S(0)} = relu %p
backward:
  %c: f32[100] {B} = relu %x
  %d: f32[200] {B} = concat %x, %x (dim=0)
  %e: f32[100] {B} = sigmoid %x
  %p.whole: f32[600] {B} = all_gather %p
update:
  %f: f32[600] {S(0)} = relu %p
)");
  std::vector<std::string> lines;
  for (const ir::SectionKind kind :
       {ir::SectionKind::kForward, ir::SectionKind::kBackward, ir::SectionKind::kUpdate}) {
    for (const ir::Node* node : graph.section(kind)->nodes) {
      const PriceList::Price price = prices.Of(graph, *node);
      lines.push_back(fmt::format("{} {:.6g} {}", node->outputs[0]->name, price.ms,
                                  static_cast<int>(price.basis)));
    }
  }
  EXPECT_THAT(lines, ElementsAre("x 0 2", "a 2 0",  // as measured
                                 "b 6 1",           // three times the elements of a rank
                                 "c 1.34 1",        // from all relus, because backward had none
                                 "d 19.6 1",        // by bytes
                                 "e 0 2",           // unknown
                                 "p.whole 18 1",    // an estimate of a step does not ask for it
                                 "f 0.06 1"));
  Machine machine;
  machine.prices = std::make_shared<PriceList>(prices);
  machine.gflops = 1e-3;
  const PricedComputation priced = PriceComputation(graph, machine);
  const double sigmoid_ms = 100.0 * 3 / 1e3;  // at 10^6 operations per second
  EXPECT_THAT(priced.unpriced, ElementsAre("sigmoid"));
  EXPECT_NEAR(priced.compute_ms, 2 + 6 + 1.34 + 19.6 + 0.06 + sigmoid_ms, 1e-9);
  EXPECT_EQ(priced.same_types_ms, 2);
  EXPECT_NEAR(priced.between_ms, 7 * (10 - 9) / 5.0, 1e-9);
}

// The time of one element says nothing about many.
TEST(PriceList, ShortCallsHaveNoRate) {
  Profile profile = {3, true, 1, 0, {}};
  profile.calls = {{"relu", "forward", "f32[1] -> f32[1]", 2, 0.002, 2, 16}};
  const PriceList prices(profile, "p.json");
  const ir::Graph graph = ParseOrDie(R"(graph "g" mesh(data=1) micro_batches=1
forward:
  %x: f32[100] {B} = input (dtype="f32", name="x", shape=[100])
  %a: f32[100] {B} = relu %x
  %y: f32[1] {B} = input (dtype="f32", name="y", shape=[1])
  %b: f32[1] {B} = relu %y
)");
  EXPECT_EQ(prices.Of(graph, *graph.FindValue("a")->producer).basis, PriceList::Basis::kNone);
  EXPECT_EQ(prices.Of(graph, *graph.FindValue("b")->producer).ms, 0.001);
}

// A sum of 400 bytes takes 6 ms, of which a processor works 1.5; gathers 1 ms per 100 bytes.
Profile ProfileOfTransfers() {
  Profile profile = {3, true, 10, 0, {}};
  profile.transfers = {{"all_reduce", "backward", "f32[10,10] -> f32[10,10]", 2, 12, 3, 800},
                       {"all_gather", "update", "f32[2500] -> f32[5000]", 1, 100, 50, 1e4}};
  return profile;
}

TEST(PriceList, TransfersOfTheSameRanksHavePrices) {
  const ir::Graph graph = ParseOrDie(R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %p: f32[600] {S(0)} = variable (dtype="f32", shape=[600])
forward:
  %x: f32[4,10] {S(0)} = input (dtype="f32", name="x", shape=[4,10])
backward:
  %g: f32[10,10] {P} = linear_grad_weight %x, %x
  %s: f32[10,10] {B} = all_reduce %g
  %r: f32[10,10] {S(0)} = reduce_scatter %g
update:
  %w: f32[600] {B} = all_gather %p
)");
  const auto lines = [&](const PriceList& prices) {
    std::vector<std::string> lines;
    for (const char* name : {"s", "r", "w"}) {
      const PriceList::TransferPrice price =
          prices.OfTransfer(graph, *graph.FindValue(name)->producer);
      lines.push_back(fmt::format("{} {:.6g} {:.6g} {}", name, price.ms, price.processor_ms,
                                  static_cast<int>(price.basis)));
    }
    return lines;
  };
  const PriceList prices(ProfileOfTransfers(), "p.json", {{0, 1}, false});
  EXPECT_THAT(lines(prices), ElementsAre("s 6 1.5 0",             // as measured
                                         "r 2.07407 0.981481 1",  // 200 bytes, as all take per byte
                                         "w 12 6 1"));            // 1200 bytes, as gathers
  // Beside the computation, on processors that it does not use.
  EXPECT_EQ(lines(PriceList(ProfileOfTransfers(), "p.json", {{0, 1}, true}))[0], "s 6 0 0");

  Machine machine;
  machine.prices = std::make_shared<PriceList>(prices);
  EXPECT_FALSE(HasTransferPrices(graph.mesh(), machine));  // of ranks on one host
  machine.ranks_per_host = 1;
  EXPECT_TRUE(HasTransferPrices(graph.mesh(), machine));
  EXPECT_FALSE(HasTransferPrices(Mesh::DataParallel(4), machine));
  const PricedTransfers priced = PriceTransfers(graph, machine);
  EXPECT_NEAR(priced.ms, 6 + 112 * 200.0 / 10'800 + 12, 1e-9);
  EXPECT_NEAR(priced.same_types_ms, 6, 1e-9);
}

std::string WrittenFile(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/prices.json";
  std::ofstream(path) << text;
  return path;
}

std::string ErrorOf(const std::string& path, const PriceList::RunSettings& settings = {}) {
  return PriceList::Read(path, settings).status().message();
}

TEST(PriceList, IsReadFromAReport) {
  Report report;
  report.config = {{"threads", int64_t{2}}, {"dtype", std::string("bf16")}};
  report.profiles = {SmallProfile()};
  report.hosts = {0, 0, 2};
  report.processors = 5;
  const std::string path = WrittenFile(ReportAsJson(report));
  const StatusOr<PriceList> prices = PriceList::Read(path, {2, DType::kBF16});
  ASSERT_TRUE(prices.ok()) << prices.status().message();
  const ir::Graph graph = ParseOrDie(R"(graph "g" mesh(data=1) micro_batches=1
forward:
  %x: f32[100] {B} = input (dtype="f32", name="x", shape=[100])
  %a: f32[100] {B} = relu %x
)");
  EXPECT_EQ(prices->Of(graph, *graph.FindValue("a")->producer).ms, 2);
  EXPECT_EQ(prices->source(), path);
  EXPECT_THAT(prices->ranks().hosts, ElementsAre(0, 0, 2));
  EXPECT_FALSE(prices->HasTransfersBetween({0, 0, 2}));  // it had none
  EXPECT_FALSE(prices->ranks().have_free_processors);
  report.processors = 6;  // of two ranks, of two threads and transfers each
  report.profiles[0].transfers = ProfileOfTransfers().transfers;
  const PriceList more =
      PriceList::Read(WrittenFile(ReportAsJson(report)), {2, DType::kBF16}).value();
  EXPECT_TRUE(more.ranks().have_free_processors);
  EXPECT_TRUE(more.HasTransfersBetween({0, 0, 2}));
  EXPECT_FALSE(more.HasTransfersBetween({0, 1, 2}));

  EXPECT_EQ(ErrorOf(path, {1, DType::kBF16}),
            path + ": was measured with `threads=2`, but the job has 1; measure it with as many");
  EXPECT_EQ(ErrorOf(path, {2, DType::kF32}),
            path + ": was measured with `dtype=bf16`, but the job has f32; measure it with that");
  report.profiles[0].variant.phase = "critic";
  EXPECT_THAT(ErrorOf(WrittenFile(ReportAsJson(report)), {2, DType::kBF16}),
              HasSubstr("is of a run of several sizes or phases; run one of them alone"));
  report.profiles[0].variant = {};
  report.profiles[0].is_warm = false;
  EXPECT_THAT(ErrorOf(WrittenFile(ReportAsJson(report)), {2, DType::kBF16}),
              HasSubstr("is of a run of one step, which warms up"));
  report.profiles.clear();
  EXPECT_THAT(ErrorOf(WrittenFile(ReportAsJson(report)), {2, DType::kBF16}),
              HasSubstr("is of a run without `profile`"));
  for (const char* text : {"", "{", "[]", "{\"config\": {}}"}) {
    EXPECT_THAT(ErrorOf(WrittenFile(text)), HasSubstr("is no report of a run with `profile`: "));
  }
  EXPECT_THAT(ErrorOf("/no/such/file"), HasSubstr("/no/such/file"));
}

TEST(JobPlan, SaysWhatItsTimesComeFrom) {
  PlanOptions options;
  options.model = "classifier";
  options.compile.micro_batches = 1;
  options.machine.prices = std::make_shared<PriceList>(SmallProfile(), "p.json");
  StatusOr<PlanReport> report = PlanModel(options, /*compare_stages=*/false);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const TimeEstimate& time = report->plan.time;
  EXPECT_EQ(time.compute_ms, report->plan.priced->compute_ms);
  EXPECT_EQ(time.start_ms, report->plan.priced->between_ms);
  const std::string text = TextReport(*report);
  EXPECT_THAT(text, HasSubstr(" computing by the prices of p.json (0.0% of it for shapes that were "
                              "measured; "));
  EXPECT_THAT(text, HasSubstr("linear"));
  EXPECT_THAT(text, HasSubstr(", not measured there, at 100 GFLOP/s), "));
  EXPECT_THAT(text, HasSubstr(" between "));
}

}  // namespace
}  // namespace zg::plan
