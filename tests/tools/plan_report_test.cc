// The input and output of tools/plan: flags, sizes, and the formats of its answer.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/plan/buffer_groups.h"
#include "framework/plan/html_report.h"
#include "framework/plan/json_report.h"
#include "framework/plan/text_report.h"
#include "tools/plan/paper_table.h"
#include "tools/plan/planned_model.h"

namespace zg::plan {
namespace {

using Json = nlohmann::json;

// The options of a command line, or the message of the error.
StatusOr<PlanOptions> Read(std::vector<const char*> arguments) {
  PlanOptions options;
  FlagParser flags("Test.");
  AddPlanFlags(&flags, &options);
  arguments.insert(arguments.begin(), "plan");
  ZG_RETURN_IF_ERROR(flags.parse(static_cast<int>(arguments.size()), arguments.data()).status());
  ZG_RETURN_IF_ERROR(ResolvePlanOptions(flags, &options));
  return options;
}

PlanOptions ReadOrDie(const std::vector<const char*>& arguments) {
  const StatusOr<PlanOptions> options = Read(arguments);
  EXPECT_TRUE(options.ok()) << options.status().message();
  return options.ok() ? *options : PlanOptions();
}

std::string ErrorOf(const std::vector<const char*>& arguments) {
  return Read(arguments).status().message();
}

TEST(PlanOptions, PresetsGiveWhatFlagsDoNot) {
  const PlanOptions mini = ReadOrDie({});
  EXPECT_EQ(mini.layers, 6);
  EXPECT_EQ(mini.vocabulary, 256);
  EXPECT_EQ(mini.compile.micro_batches, 1);
  const PlanOptions options =
      ReadOrDie({"--preset", "gpt2", "--layers", "3", "--ranks", "1024", "--zero", "3"});
  EXPECT_EQ(options.layers, 3);
  EXPECT_EQ(options.heads, 12);
  EXPECT_EQ(options.channels, 768);
  EXPECT_EQ(options.context, 1024);
  EXPECT_EQ(options.compile.micro_batches, 1024);
  const PlanOptions recipe = ReadOrDie({"--model", "recipe", "--layers", "2"});
  EXPECT_EQ(recipe.layers, 2);
  EXPECT_EQ(recipe.width, 2000);
}

TEST(PlanOptions, Errors) {
  EXPECT_EQ(ErrorOf({"--model", "resnet"}),
            "--model: got 'resnet', expected gpt, llama, recipe or classifier");
  EXPECT_EQ(ErrorOf({"--ranks", "0"}),
            "--ranks: got '0', expected a whole number from 1 to 1048576");
  EXPECT_EQ(ErrorOf({"--ranks", "-4"}),
            "--ranks: got '-4', expected a whole number from 1 to 1048576");
  EXPECT_EQ(ErrorOf({"--zero", "4"}),
            "--zero: got '4', expected a whole number from 0 to 3, or stages by name, such as "
            "2,blocks.*=3");
  EXPECT_EQ(ErrorOf({"--zero", "1,,blocks.*=3"}),
            "--zero: got '1,,blocks.*=3', expected a whole number from 0 to 3, or stages by name, "
            "such as 2,blocks.*=3");
  EXPECT_EQ(ErrorOf({"--fit", "8G", "--max-memory", "8G"}),
            "--max-memory: --fit says already what may be needed; leave one out");
  EXPECT_EQ(ErrorOf({"--max-memory", "much"}),
            "--max-memory: got 'much', expected unlimited, or bytes such as 500M, 8G or 8GiB");
  EXPECT_EQ(
      ErrorOf({"--overlap", "-1"}),
      "--overlap: got '-1', expected off, auto, unlimited, or bytes such as 500M, 8G or 8GiB");
  EXPECT_EQ(ErrorOf({"--fit", "8 G"}), "--fit: got '8 G', expected bytes such as 500M, 8G or 8GiB");
  EXPECT_EQ(ErrorOf({"--mesh", "replica=2,shard=2", "--ranks", "2"}),
            "--mesh: got replica=2,shard=2, which are 4 ranks, but the job has 2; give --ranks 4");
  EXPECT_EQ(ErrorOf({"--mesh", "replica=2,shrd=2"}),
            "--mesh: got the axis 'shrd', expected data or shard, over which ZeRO shards, replica, "
            "along which it keeps copies, or tensor, along which ranks share micro-batches");
  EXPECT_EQ(ErrorOf({"--heads", "5"}), "--heads: got 5, expected a divisor of --embd 384");
  EXPECT_EQ(ErrorOf({"--model", "recipe", "--heads", "5"}),
            "--heads: --model recipe has no such size; leave it out");
  EXPECT_EQ(ErrorOf({"--ranks", "2", "--micro-batches", "3"}),
            "--micro-batches: got 3, expected a multiple of the 2 ranks: every rank computes the "
            "same number per step");
  EXPECT_EQ(ErrorOf({"--params", "-1"}), "--params: got '-1', expected a number > 0 and <= 1e+18");
  EXPECT_EQ(ErrorOf({"--batch", "2000000000"}),
            "--batch: got '2000000000', expected a whole number from 1 to 1000000000");
  EXPECT_EQ(ErrorOf({"--json", "/no/such/directory/p.json"}),
            "--json: /no/such/directory/p.json: directory /no/such/directory does not exist; "
            "create it first");
  EXPECT_EQ(ErrorOf({"--html", "/"}), "--html: /: is a directory, expected the name of a file");
}

TEST(PlanOptions, ThePapersFormulasTakeNothingThatTheyDoNotKnow) {
  const std::vector<std::pair<std::string, std::string>> others = {
      {"model", "gpt"},       {"layers", "2"},        {"dropout", "0.1"}, {"optimizer", "muon"},
      {"batch", "2"},         {"threads", "2"},       {"gflops", "10"},   {"comm", "messages"},
      {"latency-us", "1"},    {"fit", "8G"},          {"overlap", "off"}, {"overlap", "unlimited"},
      {"micro-batches", "2"}, {"mesh", "data=2"},     {"dtype", "bf16"},  {"recompute", "blocks.*"},
      {"bucket-mb", "4"},     {"partition", "greedy"}};
  for (const auto& [flag, value] : others) {
    const std::string dashed = "--" + flag;
    EXPECT_EQ(ErrorOf({"--params", "1e9", dashed.c_str(), value.c_str()}),
              dashed +
                  ": --params asks for the paper's formulas, which know only --ranks and --zero; "
                  "leave it out");
  }
  EXPECT_EQ(ErrorOf({"--params", "1e9", "--no-compare-stages"}).rfind("--compare-stages: ", 0), 0u);
}

TEST(GroupBuffers, LeavesTheNumbersOfBlocksAndBucketsOut) {
  const auto buffer = [](const char* name, MemoryCategory category, int64_t bytes) {
    PlannedBuffer made;
    made.name = name;
    made.category = category;
    made.bytes = bytes;
    return made;
  };
  const MemoryCategory activations = MemoryCategory::kActivations;
  const std::vector<BufferGroup> groups = GroupBuffers(
      {buffer("logits", activations, 30), buffer("blocks.0.norm1", activations, 20),
       buffer("blocks.11.norm1", activations, 20), buffer("blocks.0.norm2", activations, 5),
       buffer("bucket7.grad", MemoryCategory::kGradients, 50),
       buffer("bucket8.grad", MemoryCategory::kCommunication, 1),
       buffer("bucket.grad_1", MemoryCategory::kGradients, 2)});
  std::vector<std::string> lines;
  for (const BufferGroup& group : groups) {
    lines.push_back(fmt::format("{} {} {} {}", group.name, MemoryCategoryName(group.category),
                                group.count, group.bytes));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "bucket7.grad gradients 1 50", "blocks.*.norm1 activations 2 40",
                       "logits activations 1 30", "blocks.0.norm2 activations 1 5",
                       "bucket.grad_1 gradients 1 2", "bucket8.grad communication 1 1"}));
}

PlanReport MakeReport(const std::vector<const char*>& arguments) {
  StatusOr<PlanReport> report = PlanModel(ReadOrDie(arguments), /*compare_stages=*/true);
  EXPECT_TRUE(report.ok()) << report.status().message();
  report->config = {{"zero", int64_t{3}}};
  return *std::move(report);
}

const std::vector<const char*> kSmallJob = {"--layers",
                                            "2",
                                            "--embd",
                                            "24",
                                            "--context",
                                            "12",
                                            "--ranks",
                                            "2",
                                            "--zero",
                                            "3",
                                            "--batch",
                                            "2",
                                            "--shard-min-elements",
                                            "50"};

TEST(JsonReport, HasEverything) {
  const PlanReport report = MakeReport(kSmallJob);
  const JobPlan& plan = report.plan;
  const Json json = Json::parse(JsonReport(report));
  EXPECT_EQ(json["model"], "gpt");
  EXPECT_EQ(json["config"]["zero"], 3);
  EXPECT_EQ(json["parameters"], plan.num_parameters);
  const Json& memory = json["memory"];
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    const std::string name(MemoryCategoryName(static_cast<MemoryCategory>(i)));
    EXPECT_EQ(memory["predicted"][name], plan.category_bytes[i]);
  }
  EXPECT_EQ(memory["predicted"]["peak"], plan.peak_bytes);
  EXPECT_EQ(memory["lower_bound"], plan.lower_bound_bytes);
  EXPECT_EQ(memory["saving"], plan.saving_bytes);
  EXPECT_GT(plan.saving_bytes, 0);
  EXPECT_EQ(memory["results"], 4);  // the loss
  EXPECT_GE(memory["ratio"], 1.0);
  const Json& peak = json["peak"];
  EXPECT_EQ(peak["op"], plan.schedule[plan.peak].op);
  EXPECT_EQ(peak["buffers"].size(), plan.peak_alive.size());
  EXPECT_EQ(peak["buffers"][0]["bytes"], plan.peak_alive[0].bytes);
  EXPECT_GT(json["communication"]["predicted"]["all_gather"]["bytes"], 0);
  EXPECT_GT(json["communication"]["predicted"]["reduce_scatter"]["count"], 0);
  EXPECT_EQ(json["communication"]["predicted"]["all_to_all"]["count"], 0);
  const Json& transfers = json["communication"]["transfers"];
  ASSERT_EQ(transfers.size(), plan.transfers.size());
  int64_t transferred_bytes = 0;
  for (const Json& transfer : transfers) transferred_bytes += transfer["bytes"].get<int64_t>();
  EXPECT_EQ(transferred_bytes, plan.sent_bytes);
  EXPECT_EQ(transfers[0]["op"], "all_gather");
  EXPECT_EQ(transfers[0]["hidden_ms"], 0);
  EXPECT_EQ(transfers[0]["reason"], "overlap is off");
  EXPECT_GT(json["time"]["flops_per_step"], 0);
  EXPECT_GT(json["time"]["step_ms"], 0);
  EXPECT_EQ(json["whole"].size(), 3u);
  EXPECT_EQ(json["whole"][0]["reason"], "fewer than 50 elements");
  ASSERT_EQ(json["stages"].size(), 4u);
  EXPECT_EQ(json["stages"][3]["memory"]["predicted"], memory["predicted"]);
  EXPECT_TRUE(json["warnings"].is_array());
  EXPECT_FALSE(json.contains("fit"));
}

TEST(TextReport, HasEverything) {
  PlanReport report = MakeReport(kSmallJob);
  report.fit_bytes = 1'000'000;
  report.fit_choices = "--zero 3 --batch 2 --micro-batches 2";
  const std::string text = TextReport(report);
  for (const char* part : {"gpt: 2 layers, 6 heads, 24 channels, context 12, vocabulary 256; ",
                           "fits into 1.0 MB: --zero 3 --batch 2 --micro-batches 2\n",
                           "2 ranks, ZeRO stage 3, 2 micro-batches per step, f32\n",
                           "a micro-batch: x: i64[2,12], y: i64[2,12]\n",
                           "memory per rank",
                           "optimizer_state",
                           "lower bound",
                           "beside it, saving while training goes on takes ",
                           ", and what a step hands out 4 B\n",
                           "most bytes are alive, ",
                           "sent per rank and step",
                           "all_gather",
                           "  sending",
                           "  not hidden because\n",
                           "  in backward  reduce_scatter",
                           "  overlap is off\n",
                           "computing at 100 GFLOP/s",
                           "whole on every rank:",
                           "fewer than 50 elements",
                           "  stage  parameters",
                           "compiled in "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST(TextReport, TellsThatTransfersAheadRaceWithNothing) {
  std::vector<const char*> arguments = kSmallJob;
  arguments.insert(arguments.end(), {"--overlap", "unlimited"});
  const PlanReport report = MakeReport(arguments);
  EXPECT_GT(report.plan.races.transfers, 0);
  EXPECT_NE(TextReport(report).find(
                fmt::format(" for {} transfers ahead, against {} accesses beside them\n",
                            report.plan.races.transfers, report.plan.races.accesses)),
            std::string::npos);
  const Json proof = Json::parse(JsonReport(report))["communication"]["race_proof"];
  EXPECT_EQ(proof["transfers"], report.plan.races.transfers);
}

TEST(HtmlReport, IsOneFileWithTheData) {
  PlanReport report = MakeReport(kSmallJob);
  report.plan.schedule[0].scope = "</script>";  // no name may end the script element
  const std::string page = HtmlReport(report);
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  const Json data = Json::parse(page.substr(from, page.find("</script>", from) - from));
  EXPECT_EQ(data["nodes"].size(), report.plan.schedule.size());
  EXPECT_EQ(data["nodes"][0][3], "</script>");
  EXPECT_EQ(data["buffers"].size(), report.plan.buffers.size());
  EXPECT_EQ(data["peak_node"], report.plan.peak);
  EXPECT_EQ(data["computing"].size(), report.plan.computing.size());
  EXPECT_EQ(data["sending"].size(), report.plan.sending.size());
  // The buffers that are alive at the peak, found as the page does.
  int64_t alive_bytes = 0;
  for (const Json& buffer : data["buffers"]) {
    if (buffer[3] <= report.plan.peak && report.plan.peak <= buffer[4]) {
      alive_bytes += buffer[2].get<int64_t>();
    }
  }
  EXPECT_EQ(alive_bytes, report.plan.schedule[report.plan.peak].alive_bytes);
  for (const char* external : {"src=", "href=", "@import", "url("}) {
    EXPECT_EQ(page.find(external), std::string::npos) << external;
  }
}

TEST(PaperTable, Figure1) {
  const PlanOptions options = ReadOrDie({"--params", "7.5e9", "--ranks", "64", "--zero", "2"});
  const StatusOr<std::string> table = PaperTable(options);
  ASSERT_TRUE(table.ok());
  for (const char* part : {"  0              15         15               90          120",
                           "31.4062", "> 2 ", "16.6406", "1.875"}) {
    EXPECT_NE(table->find(part), std::string::npos) << part << " is not in\n" << *table;
  }
  const StatusOr<std::string> text = PaperJson(options);
  ASSERT_TRUE(text.ok());
  const Json json = Json::parse(*text);
  EXPECT_EQ(json["stages"][1]["total"], 31.40625e9);
  EXPECT_EQ(json["stages"][3]["elements_sent"], 22.5e9);
}

}  // namespace
}  // namespace zg::plan
