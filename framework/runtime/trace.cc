#include "framework/runtime/trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "framework/passes/memory_timeline.h"
#include "framework/passes/predict_traffic.h"

namespace zg {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kSteps[] = "step";

// The text that is the same in all slices of a node.
struct NodeText {
  std::string fields;        // of the event, without braces
  int64_t memory_bytes = 0;  // in use while it runs
};

std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Fields(std::string_view name, std::string_view category, const Json& arguments) {
  std::string fields = fmt::format(R"("name":{},"cat":{})", Text(name), Text(category));
  if (!arguments.empty()) fields += ",\"args\":" + Text(arguments);
  return fields;
}

std::string NodeFields(const ir::Graph& graph, const ir::Node& node) {
  std::string category(ir::SectionKindName(node.section->kind));
  Json arguments = Json::object();
  if (!node.scope.empty()) arguments["module"] = node.scope;
  if (!node.outputs.empty()) arguments["value"] = "%" + node.outputs[0]->name;
  const int64_t flops = node.op->flops ? node.op->flops(node.LocalCall(graph.mesh())) : 0;
  if (flops > 0) arguments["flops"] = flops;
  int64_t bytes = 0;
  for (const ir::Value* input : node.inputs) bytes += graph.LocalType(*input).bytes();
  for (const ir::Value* output : node.outputs) bytes += graph.LocalType(*output).bytes();
  arguments["bytes"] = bytes;
  if (ir::MovesData(node)) {
    category += ",collective";
    arguments["sent_bytes"] = SentBytes(graph, node);
  }
  return Fields(node.op->name, category, arguments);
}

// The lanes of one rank.
enum class Lane { kSteps, kTransfers };

// The events of one rank.
class Writer {
 public:
  Writer(int rank, int64_t start_ns) : rank_(rank), start_ns_(start_ns) {}

  void Metadata(std::string_view name, const Json& arguments) {
    Add(fmt::format(R"({{"ph":"M","pid":{},"tid":0,"name":"{}","args":{}}})", rank_, name,
                    Text(arguments)));
  }

  void NameLane(Lane lane, std::string_view name) {
    Add(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{}}})", rank_,
                    static_cast<int>(lane), Text({{"name", name}})));
  }

  void Slice(Lane lane, std::string_view fields, int64_t begin_ns, int64_t end_ns) {
    Add(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},{}}})", rank_,
                    static_cast<int>(lane), Microseconds(begin_ns - start_ns_),
                    Microseconds(end_ns - begin_ns), fields));
  }

  // Only if it differs from the previous value.
  void Memory(int64_t at_ns, int64_t bytes) {
    if (bytes == memory_bytes_) return;
    memory_bytes_ = bytes;
    Add(fmt::format(R"({{"ph":"C","pid":{},"ts":{},"name":"memory","args":{{"bytes":{}}}}})", rank_,
                    Microseconds(at_ns - start_ns_), bytes));
  }

  std::string Take() { return std::move(text_); }

 private:
  void Add(std::string_view event) {
    if (!text_.empty()) text_ += ",\n";
    text_ += event;
  }

  static std::string Microseconds(int64_t ns) {
    return fmt::format("{:.3f}", static_cast<double>(ns) / 1e3);
  }

  const int rank_;
  const int64_t start_ns_;
  int64_t memory_bytes_ = -1;
  std::string text_;
};

// The slices of all programs, in the order of their beginnings.
std::vector<TimelineSlice> SlicesOf(const std::vector<TracedProgram>& programs) {
  std::vector<TimelineSlice> slices;
  for (const TracedProgram& program : programs) {
    slices.insert(slices.end(), program.timeline->slices.begin(), program.timeline->slices.end());
  }
  std::stable_sort(slices.begin(), slices.end(),
                   [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  return slices;
}

}  // namespace

std::string TraceEvents(const std::vector<TracedProgram>& programs, int rank, int64_t start_ns) {
  std::unordered_map<const ir::Node*, NodeText> nodes;
  bool has_transfers = false;
  for (const TracedProgram& program : programs) {
    for (const MemoryMoment& moment : TrainingTimeline(*program.graph, *program.plan).moments) {
      nodes[moment.node] = {NodeFields(*program.graph, *moment.node), moment.total_bytes()};
    }
    has_transfers = has_transfers || !program.timeline->transfers.empty();
  }
  Writer writer(rank, start_ns);
  writer.Metadata("process_name", {{"name", fmt::format("rank {}", rank)}});
  writer.Metadata("process_sort_index", {{"sort_index", rank}});
  writer.NameLane(Lane::kSteps, "steps");
  if (has_transfers) writer.NameLane(Lane::kTransfers, "transfers");
  for (const TracedProgram& program : programs) {
    for (const TimelineStep& step : program.timeline->steps) {
      std::string name = fmt::format("step {}", step.step);
      if (!program.variant.is_only()) name += ", " + program.variant.ToString();
      writer.Slice(Lane::kSteps, Fields(name, kSteps, Json::object()), step.begin_ns, step.end_ns);
    }
  }
  const std::string feed = Fields("setting inputs", kSteps, Json::object());
  for (const TimelineSlice& slice : SlicesOf(programs)) {
    if (slice.node == nullptr) {
      writer.Slice(Lane::kSteps, feed, slice.begin_ns, slice.end_ns);
      continue;
    }
    const NodeText& node = nodes.at(slice.node);
    writer.Memory(slice.begin_ns, node.memory_bytes);
    writer.Slice(Lane::kSteps, node.fields, slice.begin_ns, slice.end_ns);
  }
  for (const TracedProgram& program : programs) {
    for (const TimelineSlice& slice : program.timeline->transfers) {
      writer.Slice(Lane::kTransfers, nodes.at(slice.node).fields, slice.begin_ns, slice.end_ns);
    }
  }
  return writer.Take();
}

std::string TraceBegin(std::string_view model) {
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"model\":{}}},\n",
                     Text(model)) +
         "\"traceEvents\":[\n";
}

std::string TraceEnd() { return "\n]}\n"; }

}  // namespace zg
