#include "framework/passes/mixed_precision.h"

#include <algorithm>
#include <unordered_map>

#include "framework/ir/builder.h"
#include "framework/ops/op_names.h"
#include "framework/passes/module_patterns.h"

namespace zg {
namespace {

bool IsF32(const ir::Value& value) { return value.type.dtype == DType::kF32; }

// Whether it is the other weights of a parameter than those that the section reads otherwise.
bool IsOtherWeights(const ir::Value& value) {
  return value.producer->op->name == op_names::kOtherWeights;
}

// Whether the value is an operand of the model, rather than computed from losses.
bool IsSource(const ir::Value& value) {
  return value.producer->op->traits.kind == ir::OpKind::kInput ||
         ir::HasRole(value, Role::kParameter) || IsOtherWeights(value);
}

// Numbers of the user, such as targets and coordinates, or computed from them in f32.
bool IsF32Data(const ir::Value& value) {
  return IsF32(value) && !ir::HasRole(value, Role::kParameter) && !IsOtherWeights(value);
}

class SectionLowering {
 public:
  SectionLowering(ir::Graph* graph, ir::Section* section, DType dtype,
                  const std::vector<ScopePattern>& f32_modules)
      : graph_(*graph), section_(section), dtype_(dtype), f32_modules_(f32_modules) {}

  StatusOr<bool> Run() {
    for (ir::Node* node : std::vector<ir::Node*>(section_->nodes)) {
      if (node->op->traits.kind == ir::OpKind::kOutput) {
        ZG_RETURN_IF_ERROR(Widen(node, 0));
      } else if (node->op->traits.kind == ir::OpKind::kNextValue) {
        ZG_RETURN_IF_ERROR(Widen(node, 1));
      } else if (node->op->name == op_names::kOtherWeights) {
        other_weights_.push_back(node);
      } else if (node->op->traits.kind != ir::OpKind::kCast) {
        ZG_RETURN_IF_ERROR(Lower(node));
      }
    }
    for (ir::Node* node : other_weights_) {
      if (node->outputs[0]->users.empty())
        graph_.Erase(node);  // it would read the parameter in f32
    }
    return changed_;
  }

 private:
  Status Lower(ir::Node* node) {
    const auto is_half = [&](const ir::Value* value) { return value->type.dtype == dtype_; };
    const auto is_f32_source = [](const ir::Value* value) {
      return IsF32(*value) && IsSource(*value);
    };
    const auto is_f32_data = [](const ir::Value* value) { return IsF32Data(*value); };
    const auto may_stay = [](const ir::Value* value) {
      return !IsFloat(value->type.dtype) || IsF32Data(*value);
    };
    const std::vector<ir::Value*>& inputs = node->inputs;
    const auto any_input = [&](const auto& is) {
      return std::any_of(inputs.begin(), inputs.end(), is);
    };
    const ir::OpTraits& traits = node->op->traits;
    if (MatchesAny(f32_modules_, node->scope)) {
      ZG_RETURN_IF_ERROR(CastAll(node, dtype_, DType::kF32));
    } else if (traits.is_loss && any_input(is_half) && IsF32Data(*inputs[0])) {
      ZG_RETURN_IF_ERROR(CastAll(node, dtype_, DType::kF32));
    } else if (traits.is_loss) {
      if (any_input(is_half) && IsF32(*inputs[0])) ZG_RETURN_IF_ERROR(Cast(node, 0, dtype_));
    } else if (traits.computes_in_f32 || (traits.promotes_types && any_input(is_f32_data))) {
      ZG_RETURN_IF_ERROR(CastAll(node, dtype_, DType::kF32));
    } else if (traits.keeps_dtype && std::all_of(inputs.begin(), inputs.end(), may_stay)) {
    } else if (any_input(is_half) || any_input(is_f32_source)) {
      ZG_RETURN_IF_ERROR(CastAll(node, DType::kF32, dtype_));
    }
    for (const int input : traits.f32_inputs) {
      if (is_half(node->inputs[input])) ZG_RETURN_IF_ERROR(Cast(node, input, DType::kF32));
    }
    StatusOr<std::vector<TensorType>> types = node->op->infer_shape(node->Call());
    if (!types.ok()) return types.status().WithContext(node->scope);
    for (size_t i = 0; i < types->size(); ++i) node->outputs[i]->type = (*types)[i];
    return Status::Ok();
  }

  Status CastAll(ir::Node* node, DType from, DType to) {
    const std::vector<int>& f32_inputs = node->op->traits.f32_inputs;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (node->inputs[i]->type.dtype != from) continue;
      const bool stays = std::find(f32_inputs.begin(), f32_inputs.end(), i) != f32_inputs.end();
      if (stays && to != DType::kF32) continue;
      ZG_RETURN_IF_ERROR(Cast(node, static_cast<int>(i), to));
    }
    return Status::Ok();
  }

  Status Cast(ir::Node* node, int index, DType to) {
    ZG_ASSIGN_OR_RETURN(ir::Value* const cast, CastOf(node->inputs[index], to, node));
    graph_.ReplaceInput(node, index, cast);
    changed_ = true;
    return Status::Ok();
  }

  // One cast of a value serves the whole section; it is made before `node`. Of other weights, the
  // parameter is cast.
  StatusOr<ir::Value*> CastOf(ir::Value* value, DType to, ir::Node* node) {
    ir::Value*& cast = casts_[value];
    if (cast != nullptr) return cast;
    ir::Builder builder(&graph_, section_);
    builder.InsertBefore(node);
    builder.set_scope(value->producer->scope);
    const std::string name = fmt::format("{}.{}", value->name, DTypeName(to));
    if (IsOtherWeights(*value)) {
      ZG_ASSIGN_OR_RETURN(ir::Value* const parameter, CastOf(value->producer->inputs[0], to, node));
      cast = builder.Op(op_names::kOtherWeights, {parameter}, {}, name);
    } else {
      cast = builder.Op("cast", {value}, {{"dtype", to}}, name);
    }
    ZG_RETURN_IF_ERROR(builder.status());
    return cast;
  }

  // Results leave the section in f32.
  Status Widen(ir::Node* sink, int index) {
    ir::Value* value = sink->inputs[index];
    if (value->type.dtype != dtype_) return Status::Ok();
    ir::Builder builder(&graph_, section_);
    builder.InsertBefore(sink);
    builder.set_scope(sink->scope);
    ir::Value* wide = builder.Op("cast", {value}, {{"dtype", DType::kF32}}, value->name);
    ZG_RETURN_IF_ERROR(builder.status());
    graph_.ReplaceInput(sink, index, wide);
    changed_ = true;
    return Status::Ok();
  }

  ir::Graph& graph_;
  ir::Section* section_;
  DType dtype_;
  const std::vector<ScopePattern>& f32_modules_;
  std::unordered_map<ir::Value*, ir::Value*> casts_;
  std::vector<ir::Node*> other_weights_;  // in f32
  bool changed_ = false;
};

}  // namespace

StatusOr<bool> MixedPrecision::Run(ir::Graph& graph) const {
  std::vector<ir::Section*> sections;
  for (const auto& section : graph.sections()) {
    if (section->kind == ir::SectionKind::kForward || section->kind == ir::SectionKind::kEval) {
      sections.push_back(section.get());
    }
  }
  ZG_RETURN_IF_ERROR(CheckPatternsName(f32_modules_, sections));
  bool changed = false;
  for (ir::Section* section : sections) {
    SectionLowering lowering(&graph, section, dtype_, f32_modules_);
    ZG_ASSIGN_OR_RETURN(const bool lowered, lowering.Run());
    changed = changed || lowered;
  }
  return changed;
}

}  // namespace zg
