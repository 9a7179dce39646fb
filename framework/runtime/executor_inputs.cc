// Executor: the inputs that are set for the next micro-batch or eval.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/base/listed.h"
#include "framework/runtime/executor.h"

namespace zg {
namespace {

Status CheckConditions(const InputSlot& slot, const void* data) {
  const auto* const values = static_cast<const uint8_t*>(data);
  const uint8_t* const end = values + slot.bytes;
  const uint8_t* const bad = std::find_if(values, end, [](uint8_t value) { return value > 1; });
  if (bad == end) return Status::Ok();
  return InvalidArgument("input \"{}\": got {} at element {}, expected conditions of 0 or 1",
                         slot.name, *bad, bad - values);
}

}  // namespace

Status Executor::SetInput(std::string_view eval, std::string_view name, DType dtype,
                          const void* data, int64_t bytes, bool is_copied) {
  for (InputSlot& slot : program_.inputs) {
    if (slot.eval != eval || slot.name != name) continue;
    if (slot.type.dtype != dtype) {
      return InvalidArgument("input \"{}\": got {}, expected {}", name, DTypeName(dtype),
                             slot.type.ToString());
    }
    if (slot.bytes != bytes) {
      const bool may_vary = !options_.variant.is_only() && eval.empty();
      return InvalidArgument(
          "input \"{}\": got {} elements, expected {}, those of {} on this rank{}", name,
          bytes / SizeOf(dtype), slot.bytes / SizeOf(dtype), slot.type.ToString(),
          may_vary ? fmt::format(" {} ({})", options_.variant.Where(),
                                 options_.variant.phase.empty() ? "Trainer::set_size"
                                                                : "Trainer::set_phase")
                   : "");
    }
    if (slot.data != nullptr) {
      return InvalidArgument("input \"{}\": it is given twice; give each input once", name);
    }
    if (dtype == DType::kBool) ZG_RETURN_IF_ERROR(CheckConditions(slot, data));
    if (is_copied) {
      const auto* const begin = static_cast<const std::byte*>(data);
      slot.copy.assign(begin, begin + bytes);
      data = slot.copy.data();
    }
    static const char kNoBytes = 0;  // an empty vector's data may be null, which would mean "not
                                     // set"
    slot.data = bytes == 0 ? &kNoBytes : data;
    return Status::Ok();
  }
  if (options_.unused_inputs.count({std::string(eval), std::string(name)}) != 0)
    return Status::Ok();
  if (!eval.empty() && program_.evals.find(eval) == program_.evals.end()) return NoEval(eval);
  std::vector<std::string> names;
  for (const InputSlot& slot : program_.inputs) {
    if (slot.eval == eval) names.push_back(slot.name);
  }
  std::string program;
  if (!eval.empty()) {
    program = fmt::format(", eval {}", eval);
  } else if (!options_.variant.is_only()) {
    program = ", " + options_.variant.ToString();
  }
  return InvalidArgument("graph {}{}: it has no input \"{}\"; it has {}", graph_->name(), program,
                         name, Listed(names));
}

void Executor::ForgetInputs(std::string_view eval) {
  for (InputSlot& slot : program_.inputs) {
    if (slot.eval == eval) slot.data = nullptr;
  }
}

}  // namespace zg
