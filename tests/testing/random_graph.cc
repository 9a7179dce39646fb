#include "tests/testing/random_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "framework/base/check.h"
#include "framework/ir/builder.h"
#include "framework/ir/op_registry.h"
#include "tests/testing/random_attributes.h"
#include "tests/testing/random_choice.h"
#include "tests/testing/random_domain.h"

namespace zg::testing {
namespace {

constexpr int64_t kMaxElements = 1024;  // of a value

// A value that an op may read. Values of micro-batches differ between ranks; others, such as
// parameters, are the same everywhere.
struct Operand {
  ir::Value* value = nullptr;
  TensorType type;            // of a value to be made
  bool is_parameter = false;  // make it a parameter; otherwise an input
  bool of_micro_batch = false;

  const TensorType& Type() const { return value != nullptr ? value->type : type; }
};

Mesh MeshOf(const RandomModelOptions& options) {
  if (options.tensor_ranks == 1) return Mesh::DataParallel(options.num_ranks);
  return Mesh({{"data", options.num_ranks}, {"tensor", options.tensor_ranks}});
}

class Model {
 public:
  Model(const RandomModelOptions& options)
      : options_(options),
        random_(options.seed),
        graph_("g", MeshOf(options)),
        batch_(1 + random_.Below(3)),
        time_(1 + random_.Below(4)),
        channels_(random_.Pick<int64_t>({6, 12})),
        has_images_(random_.Percent(20)) {
    graph_.set_micro_batches(random_.Pick<int>({1, 1, 2, 3}) * options.num_ranks);
  }

  ir::Graph Make() {
    if (options_.trains) MakeForward();
    const int num_evals = options_.trains ? random_.Below(3) : 1 + random_.Below(2);
    for (int i = num_evals; i > 0; --i) MakeEval(fmt::format("eval{}", i));
    return std::move(graph_);
  }

 private:
  void MakeForward() {
    std::vector<ir::Value*> values = MakeSection(graph_.section(ir::SectionKind::kForward),
                                                 1 + random_.Below(options_.max_ops), true);
    while (!DependsOnParameter(values.back())) {
      needs_parameter_ = needs_current_ = true;
      ir::Value* value = AddRandomOp(values.back(), true);
      if (value != nullptr) values.push_back(value);
      needs_current_ = false;
    }
    ir::Value* loss = MakeLoss(values.back());
    if (random_.Percent(30)) {
      ir::Value* more = MakeLoss(random_.Pick(values));
      loss = Add("add", {Add("scale", {loss}, {{"factor", 0.5}}), more}, {});
    }
    Add("output", {loss}, {{"name", std::string("loss")}});
    if (random_.Percent(30)) {
      Add("output", {random_.Pick(values)}, {{"name", std::string("values")}});
    }
    if (random_.Percent(30)) MakeMean(random_.Pick(values));
  }

  ir::Value* Add(const std::string& op, const std::vector<ir::Value*>& inputs,
                 const ir::Attributes& attributes) {
    const StatusOr<ir::Node*> node = graph_.AddNode(section_, {op, inputs, attributes, scope_, ""});
    ZG_CHECK(node.ok(), "seed {}: {}", options_.seed, node.status().message());
    return (*node)->outputs.empty() ? nullptr : (*node)->outputs[0];
  }

  static bool DependsOnParameter(const ir::Value* value) {
    if (ir::IsTrainableParameter(*value)) return true;
    const std::vector<ir::Value*>& inputs = value->producer->inputs;
    return std::any_of(inputs.begin(), inputs.end(), DependsOnParameter);
  }

  ir::Value* AddInput(const TensorType& type, const std::string& placement) {
    const std::string name = fmt::format("{}{}", section_->name, ++num_inputs_);
    ir::Attributes attributes = {{"name", name},
                                 {"dtype", std::string(DTypeName(type.dtype))},
                                 {"shape", type.shape.dims()},
                                 {"placement", placement}};
    ir::Value* value = Add("input", {}, attributes);
    operands_.push_back({value, {}, false, placement != "B"});
    return value;
  }

  ir::Value* AddParameter(const TensorType& type) {
    ir::Builder builder(&graph_, section_);
    const bool is_frozen = options_.percent_frozen > 0 && random_.Percent(options_.percent_frozen);
    ir::Value* value =
        builder.Variable(fmt::format("w{}", ++num_parameters_), type,
                         random_.Percent(20) ? Initializer::Ones() : Initializer::Normal(0.5),
                         Role::kParameter, !is_frozen);
    ZG_CHECK(builder.status().ok(), "{}", builder.status().message());
    parameters_.push_back(value);
    operands_.push_back({value, {}, true, false});
    return value;
  }

  // Values of micro-batches, in the order in which they are computed; at least one.
  std::vector<ir::Value*> MakeSection(ir::Section* section, int num_ops, bool may_be_random) {
    section_ = section;
    operands_.clear();
    for (ir::Value* parameter : parameters_) operands_.push_back({parameter, {}, true, false});
    scope_ = "start";
    const bool has_time = random_.Percent(70);
    const Shape shape = has_images_ ? Shape{batch_, channels_, 4, 3}
                        : has_time  ? Shape{batch_, time_, channels_}
                                    : Shape{batch_, channels_};
    std::vector<ir::Value*> values = {AddInput({DType::kF32, shape}, "S(0)")};
    if (random_.Percent(20)) AddInput({DType::kF32, {channels_}}, "B");
    for (int i = 0; i < num_ops; ++i) {
      scope_ = fmt::format("blocks.{}{}", i / 3, random_.Percent(50) ? ".part" : "");
      needs_parameter_ = random_.Percent(40);
      ir::Value* value = random_.Percent(15) && values.back()->type.shape.num_dims() > 0
                             ? AddLinear(values.back())
                         : random_.Percent(5) ? AddCustomGradient(values.back())
                         : random_.Percent(5) ? AddRecurrentLayer(values.back(), may_be_random)
                                              : AddRandomOp(values.back(), may_be_random);
      if (value != nullptr) values.push_back(value);
    }
    return values;
  }

  // A linear and the nodes that usually follow it, which fuse-gelu and fuse-additions look for.
  ir::Value* AddLinear(ir::Value* x) {
    const int64_t depth = x->type.shape.dim(-1);
    const int64_t width = random_.Pick<int64_t>({depth, depth, 5});
    const auto parameter = [&](const Shape& shape) { return AddParameter({DType::kF32, shape}); };
    ir::Value* const y = Add("linear", {x, parameter({width, depth}), parameter({width})}, {});
    operands_.push_back({y, {}, false, true});
    const int next = random_.Below(3);
    if (next == 0) return Add("gelu", {y}, {});
    if (next == 1) return Add("layer_norm", {y, parameter({width}), parameter({width})}, {});
    return width == depth ? Add("add", {x, y}, {}) : y;
  }

  // A recurrent layer, if x has channels for its gates; else any op.
  ir::Value* AddRecurrentLayer(ir::Value* x, bool may_be_random) {
    const Shape& shape = x->type.shape;
    const char* const op = random_.Pick<const char*>({"lstm", "gru"});
    const bool is_lstm = op[0] == 'l';
    const int64_t gates = is_lstm ? 4 : 3;
    const bool fits =
        shape.num_dims() == 3 && shape.num_elements() > 0 && shape.dim(2) % gates == 0;
    if (!fits) return AddRandomOp(x, may_be_random);
    const int64_t hidden = shape.dim(2) / gates;
    std::vector<ir::Value*> inputs = {x, AddParameter({DType::kF32, {shape.dim(2), hidden}}),
                                      AddParameter({DType::kF32, {shape.dim(2)}})};
    const int num_states = random_.Percent(50) ? 0 : is_lstm ? 2 : 1;
    for (int i = 0; i < num_states; ++i) {
      inputs.push_back(AddInput({DType::kF32, {shape.dim(0), hidden}}, "S(0)"));
    }
    ir::Value* const states = Add(op, inputs, {{"from_end", random_.Percent(50)}});
    operands_.push_back({states, {}, false, true});
    return states;
  }

  // A composite, tanh, with its own gradient given as a custom one.
  ir::Value* AddCustomGradient(ir::Value* x) {
    ir::Value* const y = Add("tanh", {x}, {});
    ir::Value* const dy = Add("stop_gradient", {Add("scale", {y}, {{"factor", 0.0}})}, {});
    ir::Value* const dx = Add("tanh_grad", {dy, y}, {});
    ir::Value* const composite = Add("custom_gradient", {y, dy, x, dx}, {});
    operands_.push_back({composite, {}, false, true});
    return composite;
  }

  // Tries ops and operands until some fit. Null if the result would be the same on all ranks, or if
  // none fits.
  ir::Value* AddRandomOp(ir::Value* current, bool may_be_random) {
    std::vector<const ir::OpDef*> ops;
    for (const ir::OpDef* op : ir::OpRegistry::Global().All()) {
      if (op->gradient == nullptr || op->traits.is_loss || (op->traits.is_random && !may_be_random))
        continue;
      // The first is made by mixed-precision, the second has inputs that belong together, the third
      // is for meshes with shared axes.
      if (op->name == "cast" || op->name == "custom_gradient" || op->name == "place") continue;
      if (!op->traits.f32_inputs.empty()) continue;  // statistics of other operands
      ops.push_back(op);
    }
    if (current->type.shape.num_dims() == 4) {  // half of them for images
      const size_t often = ops.size() / 6;
      for (const char* name : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight", "max_pool2d",
                               "resample2d", "resample2d_grad"}) {
        ops.insert(ops.end(), often, ir::OpRegistry::Global().Find(name));
      }
    }
    for (int attempt = 0; attempt < 20; ++attempt) {
      const ir::OpDef* op = random_.Pick(ops);
      for (int trial = 0; trial < 40; ++trial) {
        std::vector<Operand> operands;
        const int max_inputs = op->max_inputs < 0 ? op->min_inputs + 2 : op->max_inputs;
        const int num_inputs = op->min_inputs + random_.Below(max_inputs - op->min_inputs + 1);
        for (int i = 0; i < num_inputs; ++i) {
          operands.push_back(RandomOperand(current, i == 0 ? 70 : 15));
        }
        const ir::Attributes attributes = RandomAttributes(*op, &random_, &num_streams_);
        if (!Fits(*op, operands, attributes)) continue;
        return AddOp(*op, operands, attributes);
      }
    }
    return nullptr;
  }

  Operand RandomOperand(ir::Value* current, int percent_current) {
    if (random_.Percent(percent_current)) return {current, {}, false, true};
    const int choice = random_.Below(100);
    if (choice < 30) return random_.Pick(operands_);
    const Shape& shape = current->type.shape;
    const int64_t last = shape.num_dims() > 0 ? shape.dim(-1) : 1;
    const int64_t width = random_.Pick<int64_t>({last, channels_, 5, 2 * channels_});
    std::vector<Shape> shapes = {{last},  {last},        {width, last},  {width, last},
                                 {width}, {time_, last}, {7, channels_}, shape};
    if (shape.num_dims() == 4) {  // weights and biases of images
      const int64_t of_channel = shape.dim(1) / random_.Pick<int64_t>({1, 1, 2});
      shapes = {{shape.dim(1)}, {6}, {6, of_channel, 2, 2}, {6, of_channel, 1, 3}, shape};
    }
    if (choice < 85) return {nullptr, {DType::kF32, random_.Pick(shapes)}, true, false};
    const Shape mask = random_.Percent(60) ? shapes.back() : Shape{last};
    if (choice < 92) return {nullptr, {DType::kBool, mask}, false, true};
    const Shape ids = random_.Percent(50) ? Shape{batch_, time_} : Shape{batch_};
    return {nullptr, {DType::kI64, ids}, false, true};
  }

  bool Fits(const ir::OpDef& op, const std::vector<Operand>& operands,
            const ir::Attributes& attributes) const {
    ir::OpCall call{&op, {}, attributes};
    if (!ir::CompleteAttributes(op.attributes, &call.attributes).ok()) return false;
    std::vector<Sbp> placements;
    bool of_micro_batch = false;
    bool has_parameter = false;
    bool has_ids = false;
    int64_t fewest_rows = 3;
    for (const Operand& operand : operands) {
      const Shape& shape = operand.Type().shape;
      has_parameter = has_parameter || operand.is_parameter;
      has_ids = has_ids || operand.Type().dtype == DType::kI64;
      if (operand.Type().dtype != DType::kI64) {
        for (const int64_t size : shape.dims()) fewest_rows = std::min(fewest_rows, size);
      }
      call.inputs.push_back(operand.Type());
      placements.push_back(operand.of_micro_batch ? Sbp::S(0) : Sbp::B());
      of_micro_batch = of_micro_batch || operand.of_micro_batch;
    }
    if (needs_parameter_ && !has_parameter) return false;
    if (needs_current_ && !of_micro_batch) return false;
    const StatusOr<std::vector<TensorType>> types = op.infer_shape(call);
    if (!types.ok() || !IsFloat((*types)[0].dtype)) return false;
    for (const TensorType& type : *types) {
      if (type.shape.num_elements() > kMaxElements) return false;
      for (const int64_t size : type.shape.dims()) fewest_rows = std::min(fewest_rows, size);
    }
    if (has_ids && fewest_rows < 3) return false;  // ids are 0, 1 or 2, also of a table's gradient
    // A chain of nothing but parameters is rare.
    if (!of_micro_batch) return !op.traits.is_random && options_.seed % 5 == 0;
    // Ops that draw random numbers do so for each sample.
    if (!op.traits.is_random) return (*types)[0].dtype == DType::kF32;
    return placements[0] == Sbp::S(0) && (*types)[0].shape.num_dims() > 1;
  }

  ir::Value* AddOp(const ir::OpDef& op, const std::vector<Operand>& operands,
                   const ir::Attributes& attributes) {
    std::vector<ir::Value*> inputs;
    bool of_micro_batch = false;
    for (const Operand& operand : operands) {
      of_micro_batch = of_micro_batch || operand.of_micro_batch;
      if (operand.value != nullptr) {
        inputs.push_back(operand.value);
      } else {
        inputs.push_back(operand.is_parameter ? AddParameter(operand.type)
                                              : AddInput(operand.type, "S(0)"));
      }
    }
    const auto add = [this](const std::string& name, const std::vector<ir::Value*>& operands,
                            const ir::Attributes& of_node) { return Add(name, operands, of_node); };
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = InDomain(op.name, i, inputs[i], add);
    }
    ir::Value* value = Add(op.name, inputs, attributes);
    operands_.push_back({value, {}, false, of_micro_batch});
    return of_micro_batch ? value : nullptr;
  }

  // The mean of a value as a result of the step, and in a buffer that halves its previous value.
  void MakeMean(ir::Value* value) {
    std::vector<int64_t> dims(value->type.shape.num_dims());
    std::iota(dims.begin(), dims.end(), 0);
    const double factor = 1.0 / static_cast<double>(value->type.shape.num_elements());
    ir::Value* mean = Add("scale", {Add("sum", {value}, {{"dims", dims}})}, {{"factor", factor}});
    Add("output", {mean}, {{"name", std::string("mean")}});
    ir::Builder builder(&graph_, section_);
    ir::Value* buffer =
        builder.Variable("buffer", {DType::kF32, Shape{}}, Initializer::Normal(0.5), Role::kBuffer);
    ZG_CHECK(builder.status().ok(), "{}", builder.status().message());
    ir::Value* next = Add("scale", {Add("add", {buffer, mean}, {})}, {{"factor", 0.5}});
    Add("next_value", {buffer, next}, {});
  }

  ir::Value* MakeLoss(ir::Value* prediction) {
    scope_ = "loss";
    std::vector<const ir::OpDef*> losses;
    for (const ir::OpDef* op : ir::OpRegistry::Global().All()) {
      if (op->traits.is_loss && op->gradient != nullptr) losses.push_back(op);
    }
    const Shape& shape = prediction->type.shape;
    std::vector<int64_t> rows = shape.dims();
    if (!rows.empty()) rows.pop_back();
    const double divisor = static_cast<double>(std::max<int64_t>(1, shape.num_elements()));
    for (;;) {
      const ir::OpDef* op = random_.Pick(losses);
      const TensorType target =
          random_.Percent(50) ? TensorType{DType::kI64, Shape(rows)} : prediction->type;
      // Labels must be columns, and every micro-batch has its own.
      if (target.dtype == DType::kI64 && (rows.empty() || shape.dim(-1) < 3)) continue;
      const std::vector<Operand> operands = {{prediction, {}, false, true},
                                             {nullptr, target, false, true}};
      ir::OpCall call{op, {prediction->type, target}, {{"divisor", divisor}}};
      if (!ir::CompleteAttributes(op->attributes, &call.attributes).ok() ||
          !op->infer_shape(call).ok()) {
        continue;
      }
      const std::string placement = target.shape.num_dims() == 0 ? "B" : "S(0)";
      return Add(op->name, {prediction, AddInput(target, placement)}, {{"divisor", divisor}});
    }
  }

  // Rows that programs leave to each other, attention to them, and a state that each run adds to.
  void MakeCache(ir::Value* rows) {
    const Shape& shape = rows->type.shape;
    const std::vector<int64_t> starts = {random_.Percent(50) ? 1 : shape.dim(0)};
    ir::Value* const start = AddInput({DType::kI64, Shape(starts)}, starts[0] == 1 ? "B" : "S(0)");
    ir::Value* const cached = Add("cached_rows", {rows, start},
                                  {{"name", std::string("rows")}, {"size", shape.dim(1) + 2}});
    ir::Value* const attended = Add("cached_attention", {rows, cached, cached, start},
                                    {{"heads", int64_t{2}}, {"key_heads", int64_t{2}}});
    Add("output", {cached}, {{"name", std::string("rows")}});
    Add("output", {attended}, {{"name", std::string("attended")}});
    ir::Attributes state = {{"name", std::string("state")}};
    ir::Value* const first = Add("slice", {rows}, {{"dim", 1}, {"start", 0}, {"size", 1}});
    ir::Value* const left = Add("left_rows", {rows, start},
                                {{"name", std::string("state")}, {"channels", shape.dim(2)}});
    Add("keep_rows", {Add("add", {left, first}, {}), Add("iota", {}, {{"size", 1}})}, state);
    Add("output", {left}, state);
  }

  void MakeEval(const std::string& name) {
    const std::vector<ir::Value*> values =
        MakeSection(graph_.AddEvalSection(name), 1 + random_.Below(4), false);
    if (values[0]->type.shape.num_dims() == 3 && random_.Percent(40)) MakeCache(values[0]);
    Add("output", {values.back()}, {{"name", std::string("last")}});
    if (random_.Percent(50)) Add("output", {random_.Pick(values)}, {{"name", std::string("any")}});
    if (!parameters_.empty() && random_.Percent(50)) {  // most of them are trained
      ir::Value* const doubled = Add("scale", {random_.Pick(parameters_)}, {{"factor", 2.0}});
      Add("output", {doubled}, {{"name", std::string("weights")}});
    }
    if (random_.Percent(50)) {
      ir::Value* loss = MakeLoss(values.back());
      Add("output", {loss}, {{"name", std::string("loss")}});
    }
  }

  const RandomModelOptions options_;
  Random random_;
  ir::Graph graph_;
  const int64_t batch_;
  const int64_t time_;
  const int64_t channels_;
  const bool has_images_;  // inputs of channels, rows and columns
  ir::Section* section_ = nullptr;
  std::string scope_;
  std::vector<Operand> operands_;
  std::vector<ir::Value*> parameters_;
  int num_inputs_ = 0;
  int num_parameters_ = 0;
  int num_streams_ = 0;
  bool needs_parameter_ = false;
  bool needs_current_ = false;
};

}  // namespace

ir::Graph MakeRandomModel(const RandomModelOptions& options) { return Model(options).Make(); }

}  // namespace zg::testing
