#include "framework/runtime/same_on_all_ranks.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "framework/runtime/non_finite.h"

namespace zg {
namespace {

constexpr uint64_t kIsChecksum = uint64_t{1} << 63;
constexpr int64_t kComparedBytes = int64_t{1} << 20;  // compared at once, for an input that differs

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
  Comparison whole = {"inputs with placement B", "it has placement B", {}, {}};
  whole.reference.assign(words_.size(), 0);
  Comparison shared = {"inputs of shared micro-batches", "these ranks share micro-batches", {}, {}};
  const Mesh& mesh = program->memory.graph().mesh();
  std::vector<int> first_of(mesh.num_data_ranks(), -1);
  for (int rank = 0; rank < static_cast<int>(words_.size()); ++rank) {
    int& first = first_of[mesh.DataIndex(rank)];
    if (first < 0) first = rank;
    shared.reference.push_back(first);
  }
  const bool shares = mesh.num_ranks() > mesh.num_data_ranks();
  for (const InstructionList* list : program->Lists()) {
    whole.slots.emplace_back();
    shared.slots.emplace_back();
    for (const Instruction& instruction : list->instructions) {
      if (instruction.kind() != ir::OpKind::kInput) continue;
      if (program->inputs[instruction.slot].is_same_on_all_ranks) {
        whole.slots.back().push_back(instruction.slot);
      } else if (shares) {
        shared.slots.back().push_back(instruction.slot);
      }
    }
  }
  comparisons_ = {std::move(whole), std::move(shared)};
}

StatusOr<int> SameOnAllRanks::FirstThatDiffers(std::string_view name,
                                               const std::vector<int>& reference, uint64_t word) {
  ZG_RETURN_IF_ERROR(control_.ExchangeWord(name, word, words_.data()));
  for (size_t rank = 0; rank < words_.size(); ++rank) {
    if (words_[rank] != words_[reference[rank]]) return static_cast<int>(rank);
  }
  return -1;
}

Status SameOnAllRanks::CheckStep(double lr_factor, const std::string& groups,
                                 const Variant& variant) {
  if (control_.size() == 1) return Status::Ok();
  uint64_t word = 0;
  static_assert(sizeof(word) == sizeof(lr_factor));
  std::memcpy(&word, &lr_factor, sizeof(word));
  if (!groups.empty()) word = Checksum(word, groups.data(), static_cast<int64_t>(groups.size()));
  if (!variant.is_only()) {
    const std::string text = variant.ToString();
    word = Checksum(word, text.data(), static_cast<int64_t>(text.size()));
  }
  ZG_ASSIGN_OR_RETURN(const int other,
                      FirstThatDiffers("learning rate factor", comparisons_[0].reference, word));
  if (other < 0) return Status::Ok();
  const std::string kind = fmt::format("updates the groups {}{}", groups.empty() ? "all" : groups,
                                       variant.is_only() ? "" : " " + variant.Where());
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> kind_of,
                      control_.Exchange("kind of step", kind));
  if (kind_of[other] != kind_of[0]) {
    return InvalidArgument(
        "the step {} on rank {}, but {} on rank 0; take the same step on every rank",
        kind_of[other], other, kind_of[0]);
  }
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> factor_of,
                      control_.Exchange("learning rate factors", fmt::format("{}", lr_factor)));
  return InvalidArgument(
      "the factor of the learning rate is {} on rank {}, but {} on rank 0; set the same on every "
      "rank",
      factor_of[other], other, factor_of[0]);
}

Status SameOnAllRanks::CheckInputs(const InstructionList& list) {
  if (control_.size() == 1) return Status::Ok();
  for (const Comparison& comparison : comparisons_) ZG_RETURN_IF_ERROR(Compare(comparison, list));
  return Status::Ok();
}

Status SameOnAllRanks::Compare(const Comparison& comparison, const InstructionList& list) {
  const std::vector<int>& slots = comparison.slots[list.index];
  if (slots.empty()) return Status::Ok();
  // A rank whose input was not set takes part: its word is which one, without the bit of a checksum.
  uint64_t word = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    const InputSlot& input = program_.inputs[slots[i]];
    if (input.data == nullptr) {
      word = i;
      break;
    }
    word = Checksum(word, input.data, input.bytes) | kIsChecksum;
  }
  ZG_ASSIGN_OR_RETURN(const int other,
                      FirstThatDiffers(comparison.name, comparison.reference, word));
  for (size_t rank = 0; rank < words_.size(); ++rank) {
    if ((words_[rank] & kIsChecksum) != 0) continue;
    return InvalidArgument("input \"{}\" was not set on rank {}; feed it on every rank",
                           program_.inputs[slots[words_[rank]]].name, rank);
  }
  if (other < 0) return Status::Ok();
  for (const int slot : slots) {
    ZG_RETURN_IF_ERROR(FindDifference(comparison, program_.inputs[slot]));
  }
  return Status::Ok();
}

Status SameOnAllRanks::FindDifference(const Comparison& comparison, const InputSlot& slot) {
  const auto* const data = static_cast<const char*>(slot.data);
  const int64_t element_bytes = SizeOf(slot.type.dtype);
  for (int64_t begin = 0; begin < slot.bytes; begin += kComparedBytes) {
    const int64_t bytes = std::min(kComparedBytes, slot.bytes - begin);
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                        control_.Exchange("input that differs", std::string(data + begin, bytes)));
    for (size_t rank = 1; rank < all.size(); ++rank) {
      const int reference = comparison.reference[rank];
      const std::string& expected = all[reference];
      const auto [theirs, got] = std::mismatch(expected.begin(), expected.end(), all[rank].begin());
      if (theirs == expected.end()) continue;
      const int64_t index = (theirs - expected.begin()) / element_bytes;
      return InvalidArgument(
          "input \"{}\": its element {} is {} on rank {} and {} on rank {}, but {}; feed them the "
          "same{}",
          slot.name, begin / element_bytes + index,
          Element(slot.type.dtype, all[rank].data(), index), rank,
          Element(slot.type.dtype, expected.data(), index), reference, comparison.reason,
          slot.is_same_on_all_ranks ? ", or give the input a placement S(dim)"
                                    : ", by Trainer::data_rank()");
    }
  }
  return Status::Ok();
}

}  // namespace zg
