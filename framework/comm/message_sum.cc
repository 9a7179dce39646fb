#include "framework/comm/message_sum.h"

#include <algorithm>
#include <array>

#include "framework/comm/fold.h"
#include "framework/comm/message_chunks.h"

namespace zg {
namespace {

constexpr int kTagTerm = 3;
constexpr int kTagSum = 4;
constexpr int kTagStart = 5;   // a sum to continue, from the owner
constexpr int kTagReturn = 6;  // a complete sum, to the owner

constexpr int64_t kChunkMultiple = 64;  // elements: buffers begin at cache lines

bool operator==(const SumBytes& a, const SumBytes& b) {
  return a.term == b.term && a.running == b.running && a.sum == b.sum && a.continues == b.continues;
}

}  // namespace

// One sum. A rank posts the messages of a chunk when it has added up the chunk kMessageDepth before
// it and sent that on, so that no message has to be buffered. Ranks cannot wait for each other in a
// circle: for a chunk, a rank waits for stops on hosts before its own, and for what others do once
// they are done with earlier chunks.
class MessageSum::Call {
 public:
  Call(MessageSum* sum, const SumPlan& plan, const SumBytes& bytes, const Operands& operands,
       std::byte* workspace, int64_t workspace_bytes)
      : sum_(*sum),
        plan_(plan),
        bytes_(bytes),
        operands_(operands),
        workspace_(workspace),
        slot_bytes_(workspace_bytes / kMessageDepth),
        chunk_(ChunkElements(plan.buffer_bytes)) {}

  Status Run() {
    const int64_t num_steps = (operands_.parts.part + chunk_ - 1) / chunk_;
    ZG_RETURN_IF_ERROR(RunChunks(
        num_steps, [&](int64_t step) { return Post(step); },
        [&](int64_t step) { return AddUp(step); }));
    for (MpiRequests& requests : leaving_) ZG_RETURN_IF_ERROR(sum_.wait_(requests));
    return sum_.wait_(returning_);
  }

 private:
  // Elements of every rank's chunks. One rank alone sends nothing.
  int64_t ChunkElements(int64_t buffer_bytes) const {
    const int64_t most = MessageChunkBytes(2) / bytes_.term;
    if (buffer_bytes == 0) return most;
    return std::min(most, slot_bytes_ / buffer_bytes / kChunkMultiple * kChunkMultiple);
  }

  // The elements of a part in a step.
  int64_t Count(int part, int64_t step) const {
    return std::clamp<int64_t>(operands_.parts.count(part) - step * chunk_, 0, chunk_);
  }
  const std::byte* OwnTerm(int part, int64_t step) const {
    return operands_.input + (operands_.parts.begin(part) + step * chunk_) * bytes_.term;
  }
  std::byte* Output(int64_t step) const { return operands_.output + step * chunk_ * bytes_.sum; }

  // Goes through the buffers of a step in their order.
  class Buffers {
   public:
    explicit Buffers(std::byte* begin, int64_t chunk) : next_(begin), chunk_(chunk) {}
    std::byte* Next(int64_t bytes_of_element) {
      std::byte* const buffer = next_;
      next_ += chunk_ * bytes_of_element;
      return buffer;
    }

   private:
    std::byte* next_;
    const int64_t chunk_;
  };
  Buffers BuffersOf(int64_t step) const {
    return Buffers(workspace_ + MessageSlot(step) * slot_bytes_, chunk_);
  }

  Status Receive(std::byte* data, int64_t bytes, int from, int tag, MpiRequests& requests) {
    sum_.traffic_.AddReceived(bytes);
    return requests.Receive(sum_.comm_, data, bytes, from, tag);
  }

  Status Post(int64_t step) {
    ZG_RETURN_IF_ERROR(sum_.wait_(leaving_[MessageSlot(step)]));
    MpiRequests& requests = arriving_[MessageSlot(step)];
    Buffers buffers = BuffersOf(step);
    for (const SumTask& task : plan_.tasks) {
      const int64_t count = Count(task.part, step);
      if (task.from >= 0) {
        std::byte* const buffer = buffers.Next(task.BytesFrom(bytes_));
        const int tag = task.is_first ? kTagStart : kTagSum;
        if (count > 0) {
          ZG_RETURN_IF_ERROR(
              Receive(buffer, count * task.BytesFrom(bytes_), task.from, tag, requests));
        }
      }
      for (const int term : task.terms) {
        if (term == sum_.rank_) continue;
        std::byte* const buffer = buffers.Next(bytes_.term);
        if (count == 0) continue;
        ZG_RETURN_IF_ERROR(Receive(buffer, count * bytes_.term, term, kTagTerm, requests));
      }
      if (task.to >= 0) buffers.Next(task.BytesTo(bytes_));
    }
    const int64_t own_count = Count(sum_.rank_, step);
    if (plan_.started_on >= 0 && own_count > 0) {
      ZG_RETURN_IF_ERROR(requests.Send(sum_.comm_, Output(step), own_count * bytes_.sum,
                                       plan_.started_on, kTagStart));
    }
    for (const SentTerm& sent : plan_.terms) {
      const int64_t count = Count(sent.part, step);
      if (count == 0) continue;
      ZG_RETURN_IF_ERROR(requests.Send(sum_.comm_, OwnTerm(sent.part, step), count * bytes_.term,
                                       sent.to, kTagTerm));
    }
    return Status::Ok();
  }

  Status AddUp(int64_t step) {
    ZG_RETURN_IF_ERROR(sum_.wait_(arriving_[MessageSlot(step)]));
    Buffers buffers = BuffersOf(step);
    for (const SumTask& task : plan_.tasks) {
      bool continues = false;
      inputs_.clear();
      if (task.from >= 0) {
        inputs_.push_back(buffers.Next(task.BytesFrom(bytes_)));
        continues = true;
      } else if (bytes_.continues) {
        inputs_.push_back(Output(step));
        continues = true;
      }
      for (const int term : task.terms) {
        inputs_.push_back(term == sum_.rank_ ? OwnTerm(task.part, step)
                                             : buffers.Next(bytes_.term));
      }
      std::byte* const result = task.to >= 0 ? buffers.Next(task.BytesTo(bytes_)) : Output(step);
      const int64_t count = Count(task.part, step);
      if (count == 0) continue;
      ReductionTypes types = operands_.types;
      if (!task.is_last && bytes_.running != bytes_.sum) types.sum = DType::kF32;
      Fold(types, continues, inputs_.data(), static_cast<int>(inputs_.size()), count, result);
      if (task.to >= 0) {
        ZG_RETURN_IF_ERROR(leaving_[MessageSlot(step)].Send(sum_.comm_, result,
                                                            count * task.BytesTo(bytes_), task.to,
                                                            task.is_last ? kTagReturn : kTagSum));
      }
      // In place, the sum replaces terms that have been added here.
      if (task.part == sum_.rank_ && plan_.returned_from >= 0) {
        ZG_RETURN_IF_ERROR(
            Receive(Output(step), count * bytes_.sum, plan_.returned_from, kTagReturn, returning_));
      }
    }
    return Status::Ok();
  }

  MessageSum& sum_;
  const SumPlan& plan_;
  const SumBytes bytes_;
  const Operands& operands_;
  std::byte* const workspace_;
  const int64_t slot_bytes_;
  const int64_t chunk_;                              // elements
  std::array<MpiRequests, kMessageDepth> arriving_;  // and the terms that leave
  std::array<MpiRequests, kMessageDepth> leaving_;   // sums
  MpiRequests returning_;
  std::vector<const void*> inputs_;
};

const SumPlan& MessageSum::PlanFor(const SumBytes& bytes, bool goes_along_hosts) {
  for (const MadePlan& made : plans_) {
    if (made.bytes == bytes && made.goes_along_hosts == goes_along_hosts) return made.plan;
  }
  const std::vector<int> one_host(hosts_.size());
  const SumPlan plan = PlanSum(goes_along_hosts ? hosts_ : one_host, fold_order_, rank_, bytes);
  return plans_.emplace_back(MadePlan{bytes, goes_along_hosts, plan}).plan;
}

Status MessageSum::Run(const Operands& operands, std::byte* workspace, int64_t workspace_bytes) {
  const SumBytes bytes = SumBytesOf(operands.types, operands.accumulate);
  const SumPlan& plan = PlanFor(bytes, MayGoAlongHosts(operands.types, operands.parts.part));
  return Call(this, plan, bytes, operands, workspace, workspace_bytes).Run();
}

}  // namespace zg
