#include "framework/nn/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "framework/base/listed.h"
#include "framework/nn/share_variables.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/micro_batch_values.h"
#include "framework/passes/result_names.h"

namespace zg {
namespace {

const TensorType kScalar = {DType::kF32, Shape{}};

constexpr char kGradNorm[] = "grad_norm";  // a result that training always has

template <typename Items, typename NameOf>
std::string NamesOf(const Items& items, NameOf name_of) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(fmt::format("'{}'", name_of(item)));
  return Listed(names);
}

Status CheckResults(const std::vector<NamedVar>& results, const nn::Trace& trace) {
  std::set<std::string> names;
  for (const NamedVar& result : results) {
    ZG_RETURN_IF_ERROR(nn::CheckName("result", result.name));
    if (!names.insert(result.name).second) {
      return InvalidArgument("two results are named '{}'", result.name);
    }
    const Status usable = trace.CheckUsable(result.var);
    ZG_RETURN_IF_ERROR(usable.WithContext(fmt::format("result '{}'", result.name)));
  }
  return Status::Ok();
}

// Results are f32: conditions as 0 and 1, indices as numbers.
Var AsF32(Var result, nn::Trace& trace) {
  if (IsFloat(result.dtype())) return result;
  return trace.Append("cast", {result}, {{"dtype", DType::kF32}});
}

// For the loss and its weight. `hint` says how to get a scalar.
Status CheckLoss(const char* name, Var loss, const char* hint) {
  const TensorType& type = loss.value()->type;
  if (type != kScalar) {
    return InvalidArgument("the {} %{} is {}, expected the scalar {}; {}", name, loss.value()->name,
                           type.ToString(), kScalar.ToString(), hint);
  }
  if (MicroBatchValues(*loss.value()->producer->section).count(loss.value()) == 0) {
    return InvalidArgument(
        "the {} %{} does not depend on an input with placement S(dim), so that all ranks would "
        "compute the same\n  hint: the ranks share what such an input lists: samples, or the nodes of a "
        "graph whose losses are averaged; where there is nothing to share, add 0.0 * sum(x) of one",
        name, loss.value()->name);
  }
  return Status::Ok();
}

Status CheckSameTensors(const ir::Graph& first, const Variant& variant, const ir::Graph& other) {
  const auto text_of = [](const ir::Graph& graph, size_t i) {
    if (i >= graph.tensors().size()) return std::string("none");
    const ir::StoredTensor& tensor = graph.tensors()[i];
    return fmt::format("'{}' {}", tensor.name, tensor.type.ToString());
  };
  const size_t count = std::max(first.tensors().size(), other.tensors().size());
  for (size_t i = 0; i < count; ++i) {
    if (text_of(first, i) == text_of(other, i)) continue;
    return InvalidArgument(
        "parameter {} is {}, but {} {}; use the same parameters in the same order", i + 1,
        text_of(other, i), text_of(first, i), variant.Where());
  }
  return Status::Ok();
}

}  // namespace

Graph::Graph(const std::string& name) : ir_(name) { RegisterAllOps(); }
Graph::~Graph() = default;

void Graph::Run(const std::string& program, const std::function<Status()>& trace) {
  if (!status_.ok()) return;
  const auto with_context = [&](const Status& status) {
    return status.WithContext(fmt::format("graph {}, {}", ir_.name(), program));
  };
  if (!running_.empty()) {
    status_ = with_context(
        InvalidArgument("called inside the function of {}; call it after that", running_));
    return;
  }
  running_ = program;
  Status status;
  try {
    status = trace();
  } catch (...) {
    running_.clear();
    status_ = with_context(
        FailedPrecondition("its function threw an exception, which left the program unfinished; "
                           "make another graph"));
    throw;
  }
  running_.clear();
  if (status_.ok() && !status.ok()) status_ = with_context(status);
}

void Graph::train(const optim::Optimizer& optimizer, const std::function<Outputs(Inputs&)>& build) {
  Run("train", [&] { return TraceTrain(optimizer, build); });
}

Status Graph::TraceTrain(const optim::Optimizer& optimizer,
                         const std::function<Outputs(Inputs&)>& build) {
  if (optimizer_.has_value()) return InvalidArgument("called twice; a graph has one training loss");
  ZG_RETURN_IF_ERROR(optim::MakeUpdateRule(optimizer).status());
  if (!build) return InvalidArgument("got an empty function");
  optimizer_ = optimizer;
  nn::Trace trace(&ir_, ir_.section(ir::SectionKind::kForward), &variables_);
  Inputs inputs(&trace);
  const Outputs outputs = build(inputs);
  ZG_RETURN_IF_ERROR(trace.status());
  std::vector<NamedVar> results = outputs.items();
  const bool is_only_loss = results.size() == 1 && results[0].name == "result";
  if (is_only_loss) results[0].name = kLossResult;
  if (is_only_loss && results[0].var.empty()) {
    return InvalidArgument("the function returned no loss; return one, such as cross_entropy(...)");
  }
  ZG_RETURN_IF_ERROR(CheckResults(results, trace));
  const auto loss = std::find_if(results.begin(), results.end(),
                                 [](const NamedVar& one) { return one.name == kLossResult; });
  if (loss == results.end()) {
    return InvalidArgument("the function returned {}, expected one of the results to be the 'loss'",
                           NamesOf(results, [](const NamedVar& one) { return one.name; }));
  }
  ZG_RETURN_IF_ERROR(CheckLoss(kLossResult, loss->var, "take the mean(...), as losses do"));
  for (const NamedVar& result : results) {
    if (result.name == kLossWeightResult) {
      ZG_RETURN_IF_ERROR(CheckLoss(kLossWeightResult, result.var, "take the sum of the weights"));
    }
    if (result.name == kGradNorm) {
      return InvalidArgument("a result is named '{}', as the norm of the gradients is; rename it",
                             kGradNorm);
    }
    trace.Append("output", {AsF32(result.var, trace)}, {{"name", result.name}});
  }
  return trace.status();
}

void Graph::train(const optim::Optimizer& optimizer, const std::vector<int64_t>& sizes,
                  const std::function<Outputs(Inputs&, int64_t size)>& build) {
  Run("train", [&] { return TraceSizes(optimizer, sizes, build); });
}

// They are traced once for each variant.
Status Graph::CheckNoEvalsBefore(const char* variants) const {
  if (evals_.empty()) return Status::Ok();
  return InvalidArgument("eval '{}' was added before; with several {} call train() first",
                         evals_[0].name, variants);
}

Status Graph::TraceSizes(const optim::Optimizer& optimizer, std::vector<int64_t> sizes,
                         const std::function<Outputs(Inputs&, int64_t size)>& build) {
  std::sort(sizes.begin(), sizes.end());
  const bool are_distinct = std::adjacent_find(sizes.begin(), sizes.end()) == sizes.end();
  if (sizes.empty() || sizes.front() < 1 || !are_distinct) {
    return InvalidArgument("sizes: got [{}], expected different numbers > 0",
                           fmt::join(sizes, ", "));
  }
  ZG_RETURN_IF_ERROR(CheckNoEvalsBefore("sizes"));
  if (!build) return InvalidArgument("got an empty function");
  variant_.size = sizes.back();
  sizes.pop_back();
  for (const int64_t size : sizes) {
    other_variants_.push_back(std::make_unique<Graph>(name()));
    other_variants_.back()->variant_.size = size;
  }
  return InEveryVariant([&](Graph& graph) {
    return graph.TraceTrain(optimizer,
                            [&](Inputs& inputs) { return build(inputs, graph.variant_.size); });
  });
}

void Graph::train(const optim::Optimizer& optimizer, const std::vector<Phase>& phases) {
  Run("train", [&] { return TracePhases(optimizer, phases); });
}

Status Graph::TracePhases(const optim::Optimizer& optimizer, const std::vector<Phase>& phases) {
  if (phases.size() < 2) {
    return InvalidArgument("phases: got {}, expected at least 2", phases.size());
  }
  ZG_RETURN_IF_ERROR(CheckNoEvalsBefore("phases"));
  std::set<std::string> names;
  std::vector<nn::Traced> traced;
  for (const Phase& phase : phases) {
    ZG_RETURN_IF_ERROR(nn::CheckName("phase", phase.name));
    if (!names.insert(phase.name).second) {
      return InvalidArgument("phases: got '{}' twice, expected different names", phase.name);
    }
    Graph* graph = this;
    if (names.size() > 1) {
      graph = other_variants_.emplace_back(std::make_unique<Graph>(name())).get();
    }
    graph->variant_.phase = phase.name;
    ZG_RETURN_IF_ERROR(
        graph->TraceTrain(optimizer, phase.build).WithContext(graph->variant_.ToString()));
    traced.push_back({&graph->ir_, &graph->variables_});
  }
  return nn::ShareVariables(traced);
}

Status Graph::InEveryVariant(const std::function<Status(Graph& graph)>& change) {
  if (variant_.is_only()) return change(*this);
  ZG_RETURN_IF_ERROR(change(*this).WithContext(variant_.ToString()));
  for (const auto& other : other_variants_) {
    Status status = change(*other);
    if (status.ok()) status = CheckSameTensors(ir_, variant_, other->ir_);
    ZG_RETURN_IF_ERROR(status.WithContext(other->variant_.ToString()));
  }
  return Status::Ok();
}

void Graph::eval(const std::string& name, const std::function<Outputs(Inputs&)>& build) {
  Run(fmt::format("eval '{}'", name),
      [&] { return InEveryVariant([&](Graph& graph) { return graph.TraceEval(name, build); }); });
}

Status Graph::TraceEval(const std::string& name, const std::function<Outputs(Inputs&)>& build) {
  ZG_RETURN_IF_ERROR(nn::CheckName("eval", name));
  if (std::any_of(evals_.begin(), evals_.end(), [&](const Eval& e) { return e.name == name; })) {
    return InvalidArgument("the graph has an eval of that name already; give this one another");
  }
  if (!build) return InvalidArgument("got an empty function");
  nn::Trace trace(&ir_, ir_.AddEvalSection(name), &variables_);
  Inputs inputs(&trace);
  const Outputs outputs = build(inputs);
  ZG_RETURN_IF_ERROR(trace.status());
  if (outputs.items().empty() && !trace.fills_caches()) {
    return InvalidArgument("the function returned no result");
  }
  Eval eval{name, {}};
  ZG_RETURN_IF_ERROR(CheckResults(outputs.items(), trace));
  for (const NamedVar& item : outputs.items()) {
    const Var result = AsF32(item.var, trace);
    ZG_RETURN_IF_ERROR(trace.status());
    eval.results.push_back({item.name, result.value()->type});
    trace.Append("output", {result}, {{"name", item.name}});
  }
  evals_.push_back(std::move(eval));
  return trace.status();
}

std::vector<NamedParameter> Graph::named_parameters() const {
  std::vector<NamedParameter> parameters;
  for (const ir::StoredTensor& tensor : ir_.tensors()) {
    if (!ir::HasRole(*tensor.storage, Role::kParameter)) continue;
    parameters.push_back({tensor.name, tensor.type.shape});
  }
  return parameters;
}

int64_t Graph::num_parameters() const {
  int64_t count = 0;
  for (const NamedParameter& parameter : named_parameters()) {
    count += parameter.shape.num_elements();
  }
  return count;
}

StatusOr<TensorType> Graph::result_type(std::string_view eval, std::string_view result) const {
  const auto found = std::find_if(evals_.begin(), evals_.end(),
                                  [&](const Eval& candidate) { return candidate.name == eval; });
  if (found == evals_.end()) {
    return NotFound("graph {}: no eval '{}'; it has {}", ir_.name(), eval,
                    NamesOf(evals_, [](const Eval& one) { return one.name; }));
  }
  for (const auto& [name, type] : found->results) {
    if (name == result) return type;
  }
  return NotFound("graph {}, eval '{}': no result '{}'; it has {}", ir_.name(), eval, result,
                  NamesOf(found->results, [](const auto& one) { return one.first; }));
}

Status Graph::check() const {
  ZG_RETURN_IF_ERROR(status_);
  ZG_RETURN_IF_ERROR(variables_.CheckUnchanged().WithContext("graph " + name()));
  if (optimizer_.has_value() || !evals_.empty()) return Status::Ok();
  return InvalidArgument("graph {}: neither train() nor eval() was called", name());
}

}  // namespace zg
