#include "framework/ir/parser.h"

#include <limits>
#include <optional>

#include "framework/ir/attribute_parser.h"
#include "framework/ir/op_registry.h"
#include "framework/ir/text_cursor.h"

namespace zg::ir {
namespace {

constexpr int64_t kMaxRanks = 1 << 20;

// `%name: f32[4,8] {S(0)}`, left of the equals sign.
struct DeclaredOutput {
  std::string name;
  TensorType type;
  NdSbp sbp;
  size_t name_position = 0;
  size_t type_position = 0;
};

StatusOr<TensorType> ParseType(TextCursor* cursor) {
  constexpr std::string_view kWhat = "a type like f32[4,8]";
  const size_t position = cursor->position();
  ZG_ASSIGN_OR_RETURN(const std::string name, cursor->Word(kWhat));
  StatusOr<DType> dtype = ParseDType(name);
  if (!dtype.ok()) return cursor->ErrorAt(position, dtype.status());
  if (!cursor->LooksAt("[")) return cursor->Unexpected(kWhat);
  ZG_ASSIGN_OR_RETURN(std::vector<int64_t> dims, ParseIntegers(cursor));
  const TensorType type = {*dtype, Shape(std::move(dims))};
  if (type.shape.IsValid()) return type;
  return cursor->ErrorAt(
      position,
      InvalidArgument("got {}, expected dims >= 0 with at most 2^56 elements", type.ToString()));
}

StatusOr<NdSbp> ParsePlacement(TextCursor* cursor) {
  const size_t position = cursor->position();
  if (!cursor->Consume("{")) return NdSbp();
  StatusOr<NdSbp> sbp = ParseNdSbp(fmt::format("{{{}}}", cursor->ReadUntil('}')));
  if (sbp.ok() && !sbp->empty()) return sbp;
  if (!sbp.ok()) return cursor->ErrorAt(position, sbp.status());
  return cursor->ErrorAt(position, InvalidArgument("got {{}}, expected a placement like {{S(0)}}"));
}

StatusOr<DeclaredOutput> ParseOutput(TextCursor* cursor) {
  DeclaredOutput output;
  output.name_position = cursor->position();
  ZG_RETURN_IF_ERROR(cursor->Expect("%"));
  ZG_ASSIGN_OR_RETURN(output.name, cursor->Name("the name of a value"));
  ZG_RETURN_IF_ERROR(cursor->Expect(":"));
  output.type_position = cursor->position();
  ZG_ASSIGN_OR_RETURN(output.type, ParseType(cursor));
  ZG_ASSIGN_OR_RETURN(output.sbp, ParsePlacement(cursor));
  return output;
}

// What follows `file`: its path and, unless it is the variable's own, the tensor's name.
StatusOr<Initializer> ParseFileInitializer(TextCursor* cursor) {
  ZG_RETURN_IF_ERROR(cursor->Expect("("));
  ZG_ASSIGN_OR_RETURN(const std::string path, cursor->QuotedString("the path of a file"));
  std::string tensor;
  if (cursor->Consume(",")) {
    ZG_ASSIGN_OR_RETURN(tensor, cursor->QuotedString("the name of a tensor"));
  }
  ZG_RETURN_IF_ERROR(cursor->Expect(")"));
  return Initializer::FromFile(path, tensor);
}

// What follows `row`: at least one number.
StatusOr<Initializer> ParseRowInitializer(TextCursor* cursor) {
  ZG_RETURN_IF_ERROR(cursor->Expect("("));
  std::vector<double> row;
  do {
    ZG_ASSIGN_OR_RETURN(row.emplace_back(), cursor->Number("a number"));
  } while (cursor->Consume(","));
  ZG_RETURN_IF_ERROR(cursor->Expect(")"));
  return Initializer::Row(std::move(row));
}

StatusOr<Initializer> ParseKindOfInitializer(TextCursor* cursor) {
  const size_t position = cursor->position();
  ZG_ASSIGN_OR_RETURN(const std::string kind, cursor->Word("an initializer"));
  if (kind == "zeros") return Initializer::Zeros();
  if (kind == "ones") return Initializer::Ones();
  if (kind == "file") return ParseFileInitializer(cursor);
  if (kind == "row") return ParseRowInitializer(cursor);
  Initializer initializer;
  if (kind == "constant") {
    initializer.kind = Initializer::Kind::kConstant;
  } else if (kind == "normal") {
    initializer.kind = Initializer::Kind::kNormal;
  } else if (kind == "truncated_normal") {
    initializer.kind = Initializer::Kind::kTruncatedNormal;
  } else if (kind == "uniform") {
    initializer.kind = Initializer::Kind::kUniform;
  } else if (kind == "orthogonal") {
    initializer.kind = Initializer::Kind::kOrthogonal;
  } else {
    return cursor->ErrorAt(position,
                           InvalidArgument("got '{}', expected zeros, ones, constant(value), "
                                           "row(values), normal(deviation,mean), "
                                           "truncated_normal(deviation,bound), "
                                           "uniform(bound,mean), orthogonal(gain) or "
                                           "file(path,tensor)",
                                           kind));
  }
  ZG_RETURN_IF_ERROR(cursor->Expect("("));
  ZG_ASSIGN_OR_RETURN(initializer.scale, cursor->Number("a number"));
  if (initializer.kind == Initializer::Kind::kTruncatedNormal) {
    ZG_RETURN_IF_ERROR(cursor->Expect(","));
    ZG_ASSIGN_OR_RETURN(initializer.bound, cursor->Number("a number"));
  }
  const bool has_mean = initializer.kind == Initializer::Kind::kNormal ||
                        initializer.kind == Initializer::Kind::kUniform;
  if (has_mean && cursor->Consume(",")) {
    ZG_ASSIGN_OR_RETURN(initializer.mean, cursor->Number("a number"));
  }
  ZG_RETURN_IF_ERROR(cursor->Expect(")"));
  return initializer;
}

StatusOr<Initializer> ParseInitializer(TextCursor* cursor) {
  ZG_ASSIGN_OR_RETURN(Initializer initializer, ParseKindOfInitializer(cursor));
  if (cursor->Consume("zero_row(")) {
    ZG_ASSIGN_OR_RETURN(initializer.zero_row, cursor->Integer("a row"));
    ZG_RETURN_IF_ERROR(cursor->Expect(")"));
  }
  return initializer;
}

// The comment that may end a line, without its slashes.
StatusOr<std::string> ParseComment(TextCursor* cursor) {
  if (cursor->Consume("//")) return std::string(cursor->Rest());
  ZG_RETURN_IF_ERROR(cursor->ExpectEnd());
  return std::string();
}

class GraphParser {
 public:
  Status ParseLine(TextCursor* cursor) {
    if (cursor->AtEnd() || cursor->LooksAt("//")) return Status::Ok();
    if (!graph_.has_value()) return ParseHeader(cursor);
    if (cursor->LooksAt("%")) return ParseNodeWithOutputs(cursor);
    const size_t position = cursor->position();
    ZG_ASSIGN_OR_RETURN(const std::string word, cursor->Word("a section or a node"));
    if (word == "tensor" && cursor->LooksAt("\"")) return ParseTensor(position, cursor);
    if (cursor->LooksAt(":") || (word == "eval" && cursor->LooksAt("\""))) {
      return ParseSection(word, position, cursor);
    }
    return ParseNode({}, word, position, cursor);
  }

  bool has_graph() const { return graph_.has_value(); }
  Graph Take() { return std::move(*graph_); }

 private:
  // graph "mlp" mesh(data=2) micro_batches=4
  Status ParseHeader(TextCursor* cursor) {
    if (!cursor->Consume("graph")) {
      return cursor->Unexpected(
          "the first line, like: graph \"name\" mesh(data=2) micro_batches=4");
    }
    ZG_ASSIGN_OR_RETURN(std::string name, cursor->QuotedString("the graph's name in quotes"));
    ZG_RETURN_IF_ERROR(cursor->Expect("mesh"));
    ZG_ASSIGN_OR_RETURN(Mesh mesh, ParseMesh(cursor));
    ZG_RETURN_IF_ERROR(cursor->Expect("micro_batches"));
    ZG_RETURN_IF_ERROR(cursor->Expect("="));
    const size_t position = cursor->position();
    ZG_ASSIGN_OR_RETURN(const int64_t micro_batches, cursor->Integer("a number"));
    if (micro_batches < 1) {
      return cursor->ErrorAt(
          position, InvalidArgument("got {} micro-batches, expected at least 1", micro_batches));
    }
    ZG_RETURN_IF_ERROR(ParseComment(cursor).status());
    graph_.emplace(std::move(name), std::move(mesh), micro_batches);
    return Status::Ok();
  }

  StatusOr<Mesh> ParseMesh(TextCursor* cursor) {
    ZG_RETURN_IF_ERROR(cursor->Expect("("));
    std::vector<MeshAxis> axes;
    int64_t num_ranks = 1;
    while (!cursor->LooksAt(")")) {
      if (!axes.empty()) ZG_RETURN_IF_ERROR(cursor->Expect(","));
      size_t position = cursor->position();
      ZG_ASSIGN_OR_RETURN(std::string name, cursor->Name("a mesh axis or ')'"));
      if (Mesh(axes).FindAxis(name) >= 0) {
        return cursor->ErrorAt(position, InvalidArgument("two mesh axes are named '{}'", name));
      }
      ZG_RETURN_IF_ERROR(cursor->Expect("="));
      position = cursor->position();
      ZG_ASSIGN_OR_RETURN(const int64_t size, cursor->Integer("a number of ranks"));
      if (size < 1 || size > kMaxRanks || (num_ranks *= size) > kMaxRanks) {
        return cursor->ErrorAt(
            position,
            InvalidArgument("got an axis of {} ranks, expected 1 or more and at most {} in all",
                            size, kMaxRanks));
      }
      MeshAxis axis = {std::move(name), static_cast<int>(size)};
      if (cursor->LooksAt("/")) {
        ZG_RETURN_IF_ERROR(cursor->Expect("/"));
        ZG_ASSIGN_OR_RETURN(const int64_t parts, cursor->Integer("a number of parts"));
        if (parts < 1 || parts > kMaxRanks) {
          return cursor->ErrorAt(
              position, InvalidArgument("got {} parts, expected 1 to {}", parts, kMaxRanks));
        }
        axis.parts = static_cast<int>(parts);
        const Status fits = CheckParts(axis);
        if (!fits.ok()) return cursor->ErrorAt(position, fits);
      }
      axes.push_back(std::move(axis));
    }
    ZG_RETURN_IF_ERROR(cursor->Expect(")"));
    return Mesh(std::move(axes));
  }

  // forward:        eval "predict":
  Status ParseSection(const std::string& word, size_t position, TextCursor* cursor) {
    std::string name;
    if (word == "eval") {
      ZG_ASSIGN_OR_RETURN(name, cursor->QuotedString("the section's name in quotes"));
    }
    ZG_RETURN_IF_ERROR(cursor->Expect(":"));
    ZG_RETURN_IF_ERROR(ParseComment(cursor).status());
    int kind = 0;
    while (kind <= static_cast<int>(SectionKind::kEval) &&
           SectionKindName(static_cast<SectionKind>(kind)) != word) {
      ++kind;
    }
    const bool is_eval = kind == static_cast<int>(SectionKind::kEval);
    if (kind > static_cast<int>(SectionKind::kEval)) {
      return cursor->ErrorAt(position,
                             InvalidArgument("got section '{}', expected variables, forward, "
                                             "backward, update or eval \"name\"",
                                             word));
    }
    if (kind < last_section_kind_ || (kind == last_section_kind_ && !is_eval)) {
      return cursor->ErrorAt(position, InvalidArgument("section '{}' does not come after section "
                                                       "'{}', expected the order variables, "
                                                       "forward, backward, update, eval",
                                                       word, SectionKindName(section_->kind)));
    }
    if (is_eval) {
      for (const auto& section : graph_->sections()) {
        if (section->kind != SectionKind::kEval || section->name != name) continue;
        return cursor->ErrorAt(position,
                               InvalidArgument("two eval sections are named \"{}\"", name));
      }
    }
    last_section_kind_ = kind;
    section_ = is_eval ? graph_->AddEvalSection(std::move(name))
                       : graph_->section(static_cast<SectionKind>(kind));
    return Status::Ok();
  }

  // tensor "hidden.weight" f32[128,256] at 0 init normal(0.02)
  Status ParseTensor(size_t position, TextCursor* cursor) {
    if (section_ == nullptr || section_->nodes.empty() || section_->nodes.back()->outputs.empty()) {
      return cursor->ErrorAt(position, InvalidArgument("a tensor without storage, expected the "
                                                       "line of its variable before it"));
    }
    StoredTensor tensor;
    tensor.storage = section_->nodes.back()->outputs[0];
    ZG_ASSIGN_OR_RETURN(tensor.name, cursor->QuotedString("the tensor's name in quotes"));
    ZG_ASSIGN_OR_RETURN(tensor.type, ParseType(cursor));
    ZG_ASSIGN_OR_RETURN(tensor.split, ParsePlacement(cursor));
    ZG_RETURN_IF_ERROR(cursor->Expect("at"));
    ZG_ASSIGN_OR_RETURN(tensor.offset_elements, cursor->Integer("an offset in elements"));
    ZG_RETURN_IF_ERROR(cursor->Expect("init"));
    ZG_ASSIGN_OR_RETURN(tensor.initializer, ParseInitializer(cursor));
    if (cursor->Consume("copy_of")) {
      ZG_ASSIGN_OR_RETURN(tensor.copy_of, cursor->QuotedString("a tensor's name in quotes"));
    }
    ZG_RETURN_IF_ERROR(ParseComment(cursor).status());
    graph_->tensors().push_back(std::move(tensor));
    return Status::Ok();
  }

  Status ParseNodeWithOutputs(TextCursor* cursor) {
    std::vector<DeclaredOutput> outputs;
    do {
      ZG_ASSIGN_OR_RETURN(DeclaredOutput output, ParseOutput(cursor));
      outputs.push_back(std::move(output));
    } while (cursor->Consume(","));
    ZG_RETURN_IF_ERROR(cursor->Expect("="));
    const size_t position = cursor->position();
    ZG_ASSIGN_OR_RETURN(const std::string op, cursor->Word("an op"));
    return ParseNode(outputs, op, position, cursor);
  }

  // The rest of a node, right of its op.
  Status ParseNode(const std::vector<DeclaredOutput>& outputs, const std::string& op,
                   size_t op_position, TextCursor* cursor) {
    const OpDef* def = OpRegistry::Global().Find(op);
    const auto error_at_op = [&](const Status& status) {
      return cursor->ErrorAt(op_position, status);
    };
    if (section_ == nullptr) {
      return error_at_op(
          InvalidArgument("{}: a node outside sections, expected 'variables:', "
                          "'forward:', ... before it",
                          op));
    }
    if (def == nullptr) return error_at_op(InvalidArgument("unknown op '{}'", op));
    Graph::NodeSpec spec;
    spec.op = op;
    ZG_ASSIGN_OR_RETURN(spec.inputs, ParseInputs(cursor));
    ZG_ASSIGN_OR_RETURN(spec.attributes, ParseAttributes(cursor));
    ZG_ASSIGN_OR_RETURN(spec.scope, ParseComment(cursor));
    const auto check_outputs = [&](int expected) -> Status {
      if (static_cast<int>(outputs.size()) == expected) return Status::Ok();
      return error_at_op(
          InvalidArgument("{}: got {} outputs, expected {}", op, outputs.size(), expected));
    };
    if (def->num_outputs >= 0) ZG_RETURN_IF_ERROR(check_outputs(def->num_outputs));
    ZG_RETURN_IF_ERROR(CheckNamesAreNew(outputs, *cursor));
    StatusOr<Node*> node = graph_->AddNode(section_, std::move(spec));
    if (!node.ok()) return error_at_op(node.status());
    ZG_RETURN_IF_ERROR(check_outputs(static_cast<int>((*node)->outputs.size())));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].type == (*node)->outputs[i]->type) continue;
      return cursor->ErrorAt(
          outputs[i].type_position,
          InvalidArgument("%{}: got type {}, expected {}, which {} gives", outputs[i].name,
                          outputs[i].type.ToString(), (*node)->outputs[i]->type.ToString(), op));
    }
    // First to names that no text can have, because an output may have the name that AddNode gave
    // to another.
    for (Value* output : (*node)->outputs) graph_->Rename(output, "\n");
    for (size_t i = 0; i < outputs.size(); ++i) {
      Value* value = (*node)->outputs[i];
      graph_->Rename(value, outputs[i].name);
      value->sbp = outputs[i].sbp;
    }
    return Status::Ok();
  }

  StatusOr<std::vector<Value*>> ParseInputs(TextCursor* cursor) {
    std::vector<Value*> inputs;
    if (!cursor->LooksAt("%")) return inputs;
    do {
      const size_t position = cursor->position();
      ZG_RETURN_IF_ERROR(cursor->Expect("%"));
      ZG_ASSIGN_OR_RETURN(const std::string name, cursor->Name("the name of a value"));
      Value* value = graph_->FindValue(name);
      if (value == nullptr) {
        return cursor->ErrorAt(position, InvalidArgument("got %{}, expected a value that is "
                                                         "defined on a line above",
                                                         name));
      }
      inputs.push_back(value);
    } while (cursor->Consume(","));
    return inputs;
  }

  Status CheckNamesAreNew(const std::vector<DeclaredOutput>& outputs, const TextCursor& cursor) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      bool is_new = graph_->FindValue(outputs[i].name) == nullptr;
      for (size_t j = 0; j < i; ++j) is_new = is_new && outputs[j].name != outputs[i].name;
      if (is_new) continue;
      return cursor.ErrorAt(outputs[i].name_position,
                            InvalidArgument("two values are named %{}", outputs[i].name));
    }
    return Status::Ok();
  }

  std::optional<Graph> graph_;
  Section* section_ = nullptr;
  int last_section_kind_ = -1;
};

}  // namespace

StatusOr<Graph> Parse(std::string_view text, TextSource source) {
  GraphParser parser;
  int line_number = source.first_line;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    TextCursor cursor(text.substr(begin, end - begin),
                      fmt::format("{}:{}", source.name, line_number++));
    ZG_RETURN_IF_ERROR(parser.ParseLine(&cursor));
    begin = end + 1;
  }
  if (!parser.has_graph()) {
    return InvalidArgument(
        "{}: got no graph, expected a line like: graph \"name\" mesh(data=2) "
        "micro_batches=4",
        source.name);
  }
  return parser.Take();
}

}  // namespace zg::ir
