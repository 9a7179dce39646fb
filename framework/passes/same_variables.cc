#include "framework/passes/same_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/passes/assign_offsets.h"
#include "framework/passes/nodes_of_groups.h"

namespace zg {
namespace {

// A line for each tensor, and for the communicator's memory, with its place.
std::vector<std::string> PlacesOf(const Program& program) {
  std::vector<std::string> places;
  for (const ir::StoredTensor& tensor : program.graph.tensors()) {
    const ir::Value& storage = *tensor.storage;
    places.push_back(fmt::format("'{}' {}, element {} of {} {} at byte {}", tensor.name,
                                 tensor.type.ToString(), tensor.offset_elements,
                                 storage.type.ToString(), ToString(storage.sbp),
                                 program.memory.BaseOffset(&storage)));
  }
  const std::vector<Buffer>& stored = program.memory.storage.buffers;
  for (size_t i = 0; i < program.memory.buffers.size(); ++i) {
    const PlannedBuffer& buffer = program.memory.buffers[i];
    if (buffer.timeline != Lifetime::kAllTimelines || buffer.bytes == 0) continue;
    if (i < stored.size() && HoldsForOneStep(*stored[i].root)) continue;
    places.push_back(
        fmt::format("%{}: {} bytes at byte {}", buffer.name, buffer.bytes, buffer.offset));
  }
  return places;
}

}  // namespace

Status CheckSameVariables(const Program& program, const Program& other) {
  const std::vector<std::string> expected = PlacesOf(program);
  const std::vector<std::string> got = PlacesOf(other);
  for (size_t i = 0; i < std::max(expected.size(), got.size()); ++i) {
    const auto text = [&](const std::vector<std::string>& places) {
      return i < places.size() ? places[i] : "nothing";
    };
    if (text(expected) == text(got)) continue;
    return InvalidArgument("it keeps {}, expected {}", text(got), text(expected));
  }
  return Status::Ok();
}

}  // namespace zg
