#include "tests/testing/clobber_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace zg::testing {
namespace {

constexpr int64_t kWordBytes = 4;

// What a word of memory may hold: several values, if they share it.
using Content = std::set<const ir::Value*>;

class Walk {
 public:
  Walk(const ir::Graph& graph, const MemoryPlan& plan, int rank)
      : graph_(graph),
        plan_(plan),
        rank_(rank),
        words_(plan.arena_bytes / kWordBytes, Unique({})) {}

  Status Run() {
    for (const auto& section : graph_.sections()) {
      for (const ir::Node* node : section->nodes) ZG_RETURN_IF_ERROR(Execute(*node));
    }
    return Status::Ok();
  }

 private:
  std::pair<int64_t, int64_t> RangeOf(const ir::Value* value) const {
    const int64_t begin = plan_.OffsetOn(value, rank_);
    return {begin / kWordBytes, (begin + graph_.LocalType(*value).bytes()) / kWordBytes};
  }

  Status Execute(const ir::Node& node) {
    if (node.op->name == "assign") {  // from here on the variable holds the new value
      ZG_RETURN_IF_ERROR(CheckHolds(node, node.inputs[1]));
      Write(node.inputs[0]);
      return Status::Ok();
    }
    if (node.op->name ==
        "wait") {  // the inputs of its transfer may be gone, because its result is available
      ZG_RETURN_IF_ERROR(CheckHolds(node, node.inputs[0]));
      Keep(node.outputs[0], node.inputs, /*is_view=*/true);
      return Status::Ok();
    }
    for (const ir::Value* input : node.inputs) ZG_RETURN_IF_ERROR(CheckHolds(node, input));
    for (const ir::Value* output : node.outputs) {
      // Memory that the op leaves unchanged: the parts of a pack or gather, and the rest of a
      // view's memory.
      const std::string& op = node.op->name;
      const bool is_view = node.op->traits.kind == ir::OpKind::kView || op == "local_slice" ||
                           op == "move_texts" ||
                           op == "write_rows";  // the cache stays the cache for others
      if (is_view || op == "bucket_pack" || op == "all_gather") {
        Keep(output, node.inputs, is_view);
      } else {
        Write(output);
      }
    }
    return Status::Ok();
  }

  Status CheckHolds(const ir::Node& node, const ir::Value* value) const {
    const auto [begin, end] = RangeOf(value);
    const Content* checked = nullptr;
    for (int64_t word = begin; word < end; ++word) {
      if (words_[word] == checked) continue;
      checked = words_[word];
      if (checked->count(value) != 0) continue;
      return InvalidArgument("{} of %{} reads %{}, but its memory holds %{}", node.op->name,
                             node.outputs.empty() ? "" : node.outputs[0]->name, value->name,
                             checked->empty() ? "nothing" : (*checked->begin())->name);
    }
    return Status::Ok();
  }

  void Write(const ir::Value* value) {
    const auto [begin, end] = RangeOf(value);
    std::fill(words_.begin() + begin, words_.begin() + end, Unique({value}));
  }

  // The output's words hold it, and keep what an input had put there.
  void Keep(const ir::Value* output, const std::vector<ir::Value*>& inputs, bool is_view) {
    const auto [begin, end] = RangeOf(output);
    std::map<const Content*, const Content*> kept;  // by what a word held
    for (int64_t word = begin; word < end; ++word) {
      const auto [found, is_new] = kept.try_emplace(words_[word]);
      if (is_new) found->second = Unique(Kept(*words_[word], output, inputs, is_view));
      words_[word] = found->second;
    }
  }

  static Content Kept(const Content& before, const ir::Value* output,
                      const std::vector<ir::Value*>& inputs, bool is_view) {
    Content content = {output};
    if (is_view) content.insert(before.begin(), before.end());
    for (const ir::Value* input : inputs) {
      if (before.count(input) != 0) content.insert(input);
    }
    return content;
  }

  // Most words hold what their neighbours do, so equal contents are one object.
  const Content* Unique(Content content) { return &*contents_.insert(std::move(content)).first; }

  const ir::Graph& graph_;
  const MemoryPlan& plan_;
  int rank_;
  std::set<Content> contents_;
  std::vector<const Content*> words_;
};

}  // namespace

Status CheckNothingIsClobbered(const ir::Graph& graph, const MemoryPlan& plan, int rank) {
  return Walk(graph, plan, rank).Run();
}

}  // namespace zg::testing
