#include "framework/nn/update_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "framework/nn/functions.h"
#include "framework/nn/trace.h"
#include "framework/ops/elementwise_program.h"
#include "framework/ops/register_all_ops.h"
#include "framework/ops/update_program.h"

namespace zg::optim {
namespace {

const Shape kElements = {2};  // any shape but that of a scalar

// The traced nodes as a program.
class Writer {
 public:
  explicit Writer(const std::vector<Var>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      operands_[inputs[i].value()] = {true, static_cast<int>(i)};
    }
  }

  // The last statement gives the result.
  StatusOr<std::string> Write(Var result) {
    ZG_RETURN_IF_ERROR(Visit(result.value()).status());
    return ToString(program_);
  }

  Status Write(const std::vector<Var>& results, const std::vector<Var>& norms, Elementwise* rule) {
    for (const Var& result : results) {
      ZG_ASSIGN_OR_RETURN(const ElementwiseOperand operand, Visit(result.value()));
      rule->results.push_back(operand.index);
    }
    for (const Var& norm : norms) {
      ZG_ASSIGN_OR_RETURN(const ElementwiseOperand operand, Visit(norm.value()));
      rule->norms.push_back(operand.index);
    }
    rule->program = ToString(program_);
    return Status::Ok();
  }

 private:
  // The operand for the value, after the statements that it is computed from are written.
  StatusOr<ElementwiseOperand> Visit(const ir::Value* value) {
    if (const auto found = operands_.find(value); found != operands_.end()) return found->second;
    const ir::Node& node = *value->producer;
    ElementwiseStatement statement;
    statement.op = FindElementwiseRow(node.op->name);
    if (statement.op == nullptr) {
      return InvalidArgument(
          "{} is not elementwise; a rule takes elementwise ops only, since a rank may have a part "
          "of a parameter",
          node.op->name);
    }
    for (const ir::Value* input : node.inputs) {
      ZG_ASSIGN_OR_RETURN(const ElementwiseOperand operand, Visit(input));
      statement.operands.push_back(operand);
    }
    if (!statement.op->attribute.empty()) {
      statement.attribute = node.attributes.Float(statement.op->attribute);
    }
    program_.push_back(std::move(statement));
    return operands_[value] = {false, static_cast<int>(program_.size()) - 1};
  }

  std::unordered_map<const ir::Value*, ElementwiseOperand> operands_;
  ElementwiseProgram program_;
};

Status CheckResults(const Rule& rule, const nn::Trace& trace, const std::vector<Var>& results) {
  if (results.size() != rule.states.size() + 1) {
    return InvalidArgument("'update' returned {} Vars, expected the new parameter and {} states",
                           results.size(), rule.states.size());
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string what =
        i == 0 ? "the new parameter" : fmt::format("the new state '{}'", rule.states[i - 1]);
    ZG_RETURN_IF_ERROR(trace.CheckUsable(results[i]).WithContext(what));
    if (results[i].shape() == kElements) continue;
    return InvalidArgument("{} has shape {}, expected that of the parameter", what,
                           results[i].shape().ToString());
  }
  return Status::Ok();
}

Status CheckRanges(const Rule& rule) {
  ZG_RETURN_IF_ERROR(rule.status);
  return CheckHyperparameters(rule.name, {{"lr", rule.lr}, {"weight_decay", rule.weight_decay}});
}

Status CheckRule(const Rule& rule) {
  if (rule.states.size() > kMaxUpdateStates) {
    return InvalidArgument("got {} states, expected at most {}", rule.states.size(),
                           kMaxUpdateStates);
  }
  std::set<std::string> names;
  for (const std::string& state : rule.states) {
    ZG_RETURN_IF_ERROR(nn::CheckName("state", state));
    if (!names.insert(state).second) return InvalidArgument("two states are named '{}'", state);
  }
  if (!rule.update) return InvalidArgument("'update' is an empty function");
  return Status::Ok();
}

Status TraceEvalWeights(const Rule& rule, nn::Trace& trace, const RuleInputs& in,
                        Elementwise* traced) {
  if (!rule.eval_weights) return Status::Ok();
  RuleInputs known;
  known.parameter = in.parameter;
  known.states = in.states;
  const Var weights = rule.eval_weights(known);
  ZG_RETURN_IF_ERROR(trace.status());
  ZG_RETURN_IF_ERROR(trace.CheckUsable(weights).WithContext("'eval_weights'"));
  std::vector<Var> inputs = {in.parameter};
  inputs.insert(inputs.end(), in.states.begin(), in.states.end());
  ZG_ASSIGN_OR_RETURN(traced->eval_program, Writer(inputs).Write(weights));
  return Status::Ok();
}

Status TraceRule(const Rule& rule, Elementwise* traced) {
  ZG_RETURN_IF_ERROR(CheckRule(rule));
  RegisterAllOps();
  ir::Graph graph("rule");
  nn::Trace::Variables variables;
  nn::Trace trace(&graph, graph.section(ir::SectionKind::kForward), &variables);
  std::vector<Var> inputs;
  const auto input = [&](const std::string& name, const Shape& shape) {
    inputs.push_back(trace.Append(
        "input", {},
        {{"name", name}, {"dtype", DType::kF32}, {"shape", shape}, {"placement", Sbp::B()}}, name));
    return inputs.back();
  };
  RuleInputs in;
  in.parameter = input("parameter", kElements);
  in.gradient = input("gradient", kElements);
  for (const std::string& state : rule.states) in.states.push_back(input(state, kElements));
  in.lr = input("lr", {});
  in.weight_decay = input("weight_decay", {});
  in.number = input("number", {});
  const Var num_elements = input("num_elements", {});
  inputs.pop_back();       // they come after the norms
  std::vector<Var> norms;  // the values whose norms are taken
  in.norm = [&](Var x) {
    if (const Status usable = trace.CheckUsable(x); !usable.ok()) return trace.Fail(usable);
    if (x.shape() != kElements) {
      return trace.Fail(InvalidArgument("the norm of what has shape {}, expected the parameter's",
                                        x.shape().ToString()));
    }
    norms.push_back(1.0 * x);  // makes a statement of x, whatever it is
    return input(fmt::format("norm{}", norms.size()), {});
  };
  in.rms = [&](Var x) {
    const Var norm = in.norm(x);
    return norm / sqrt(num_elements);
  };
  std::vector<Var> results = rule.update(in);
  ZG_RETURN_IF_ERROR(trace.status());
  ZG_RETURN_IF_ERROR(CheckResults(rule, trace, results));
  if (!norms.empty()) inputs.push_back(num_elements);
  for (Var& result : results) {  // an input itself: a result must be a statement
    const auto is_input = [&](const Var& input) { return input.value() == result.value(); };
    if (std::any_of(inputs.begin(), inputs.end(), is_input)) result = 1.0 * result;
  }
  ZG_RETURN_IF_ERROR(Writer(inputs).Write(results, norms, traced));
  ir::OpDef named;
  named.name = "the rule";
  const ir::OpCall call = {
      &named,
      {},
      {{"program", traced->program}, {"results", traced->results}, {"norms", traced->norms}}};
  ZG_RETURN_IF_ERROR(ParseUpdateProgram(call).status());
  return TraceEvalWeights(rule, trace, in, traced);
}

}  // namespace

Var power(double beta, Var number) { return exp(std::log(beta) * number); }

Rule::operator Elementwise() const {
  Elementwise traced;
  traced.name = name;
  traced.lr = lr;
  traced.weight_decay = weight_decay;
  traced.states = states;
  traced.status = CheckRanges(*this);
  if (traced.status.ok()) {
    traced.status = TraceRule(*this, &traced).WithContext("optimizer " + name);
  }
  return traced;
}

}  // namespace zg::optim
