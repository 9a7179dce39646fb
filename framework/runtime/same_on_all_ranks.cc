#include "framework/runtime/same_on_all_ranks.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "framework/runtime/non_finite.h"

namespace zg {
namespace {

constexpr int64_t kComparedBytes = int64_t{1} << 20;  // at once, of an input that differs

uint64_t Checksum(uint64_t sum, const void* data, int64_t bytes) {
  const auto* from = static_cast<const char*>(data);
  for (; bytes > 0; bytes -= 8, from += 8) {
    uint64_t word = 0;
    std::memcpy(&word, from, std::min<int64_t>(bytes, 8));
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 32;
  }
  return sum;
}

std::string Element(DType dtype, const char* data, int64_t index) {
  if (IsFloat(dtype)) return ElementText(dtype, data, index);
  int64_t value = 0;  // little endian, as everything here
  std::memcpy(&value, data + index * SizeOf(dtype), SizeOf(dtype));
  return fmt::format("{}", value);
}

}  // namespace

SameOnAllRanks::SameOnAllRanks(ControlPlane* control, const BoundProgram* program)
    : control_(*control), program_(*program), words_(control->size()) {
  for (const InstructionList* list : program->Lists()) {
    std::vector<int>& slots = slots_.emplace_back();
    for (const Instruction& instruction : list->instructions) {
      if (instruction.kind() != ir::OpKind::kInput) continue;
      if (program->inputs[instruction.slot].is_same_on_all_ranks) slots.push_back(instruction.slot);
    }
  }
}

StatusOr<int> SameOnAllRanks::FirstThatDiffers(const char* name, uint64_t word) {
  ZG_RETURN_IF_ERROR(control_.ExchangeWord(name, word, words_.data()));
  for (size_t rank = 1; rank < words_.size(); ++rank) {
    if (words_[rank] != words_[0]) return static_cast<int>(rank);
  }
  return 0;
}

Status SameOnAllRanks::CheckFactor(double lr_factor) {
  if (control_.size() == 1) return Status::Ok();
  uint64_t word = 0;
  static_assert(sizeof(word) == sizeof(lr_factor));
  std::memcpy(&word, &lr_factor, sizeof(word));
  ZG_ASSIGN_OR_RETURN(const int other, FirstThatDiffers("learning rate factor", word));
  if (other == 0) return Status::Ok();
  double factors[2];
  std::memcpy(&factors[0], &words_[0], sizeof(double));
  std::memcpy(&factors[1], &words_[other], sizeof(double));
  return InvalidArgument(
      "the factor of the learning rate is {} on rank {}, but {} on rank 0; set the same "
      "on "
      "every rank",
      factors[1], other, factors[0]);
}

Status SameOnAllRanks::CheckInputs(const InstructionList& list) {
  const std::vector<int>& slots = slots_[list.index];
  if (control_.size() == 1 || slots.empty()) return Status::Ok();
  uint64_t sum = 0;
  for (const int slot : slots) {
    const InputSlot& input = program_.inputs[slot];
    if (input.data == nullptr) return Status::Ok();  // the run's error
    sum = Checksum(sum, input.data, input.bytes);
  }
  ZG_ASSIGN_OR_RETURN(const int other, FirstThatDiffers("inputs with placement B", sum));
  if (other == 0) return Status::Ok();
  for (const int slot : slots) ZG_RETURN_IF_ERROR(FindDifference(program_.inputs[slot]));
  return Status::Ok();
}

Status SameOnAllRanks::FindDifference(const InputSlot& slot) {
  const auto* const data = static_cast<const char*>(slot.data);
  const int64_t element_bytes = SizeOf(slot.type.dtype);
  for (int64_t begin = 0; begin < slot.bytes; begin += kComparedBytes) {
    const int64_t bytes = std::min(kComparedBytes, slot.bytes - begin);
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                        control_.Exchange("input that differs", std::string(data + begin, bytes)));
    for (size_t rank = 1; rank < all.size(); ++rank) {
      const auto [mine, theirs] = std::mismatch(all[0].begin(), all[0].end(), all[rank].begin());
      if (mine == all[0].end()) continue;
      const int64_t index = (mine - all[0].begin()) / element_bytes;
      return InvalidArgument(
          "input \"{}\" has placement B, but its element {} is {} on rank {} and {} on rank 0; "
          "feed "
          "every rank the same, or give the input a placement S(dim)",
          slot.name, begin / element_bytes + index,
          Element(slot.type.dtype, all[rank].data(), index), rank,
          Element(slot.type.dtype, all[0].data(), index));
    }
  }
  return Status::Ok();
}

}  // namespace zg
