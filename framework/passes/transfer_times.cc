#include "framework/passes/transfer_times.h"

#include <algorithm>

namespace zg {
namespace {

class Planner {
 public:
  Planner(int64_t max_bytes, std::vector<TransferTimes*> times) : waiting_(std::move(times)) {
    const auto has_bytes = [&](bool ahead) {
      return std::any_of(waiting_.begin(), waiting_.end(), [&](const TransferTimes* transfer) {
        return transfer->is_ahead() == ahead && transfer->bytes > 0;
      });
    };
    limit_ = has_bytes(true) && has_bytes(false) ? max_bytes / 2 : max_bytes;
  }

  void Run(int end) {
    for (int position = 0; position < end; ++position) {
      FinishNeeded(position);
      StartPossible(position);
    }
    for (TransferTimes* transfer : in_flight_) transfer->wait = end;
  }

 private:
  int64_t& BytesLike(const TransferTimes& transfer) { return bytes_[transfer.is_ahead() ? 1 : 0]; }

  bool Fits(const TransferTimes& transfer) {
    return transfer.bytes <= limit_ && BytesLike(transfer) <= limit_ - transfer.bytes;
  }

  void Finish(TransferTimes* transfer, int position) {
    transfer->wait = position;
    BytesLike(*transfer) -= transfer->bytes;
    in_flight_.erase(std::find(in_flight_.begin(), in_flight_.end(), transfer));
  }

  void FinishNeeded(int position) {
    const std::vector<TransferTimes*> in_flight = in_flight_;
    for (TransferTimes* transfer : in_flight) {
      if (transfer->needed == position) Finish(transfer, position);
    }
  }

  // Among the transfers in their places; those started ahead will be needed sooner than they could
  // be fetched again.
  void MakeRoomFor(const TransferTimes& transfer, int position) {
    if (transfer.is_ahead() || transfer.bytes > limit_) return;
    const std::vector<TransferTimes*> in_flight = in_flight_;
    for (TransferTimes* old : in_flight) {
      if (Fits(transfer)) return;
      if (!old->is_ahead() && old->bytes > 0) Finish(old, position);
    }
  }

  void StartPossible(int position) {
    bool is_in_turn = true;  // until one that is needed sooner does not fit
    const std::vector<TransferTimes*> waiting = waiting_;
    for (TransferTimes* transfer : waiting) {
      if (position < transfer->earliest) continue;
      const bool is_in_place = position == transfer->place;
      if (is_in_place) MakeRoomFor(*transfer, position);
      const bool starts = Fits(*transfer) && (is_in_turn || is_in_place);
      if (starts) {
        BytesLike(*transfer) += transfer->bytes;
        in_flight_.push_back(transfer);
      } else if (transfer->is_ahead() && transfer->bytes <= limit_) {
        is_in_turn = false;
      }
      if (!starts && !is_in_place) continue;
      transfer->start = transfer->wait = position;
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), transfer));
    }
  }

  int64_t limit_ = 0;
  std::vector<TransferTimes*> waiting_;    // to start, in the order of their places
  std::vector<TransferTimes*> in_flight_;  // in the order of their starts
  int64_t bytes_[2] = {0, 0};  // in flight: of those in their places, and of those started ahead
};

}  // namespace

void PlanTransferTimes(int64_t max_bytes, int end, std::vector<TransferTimes*> times) {
  Planner(max_bytes, std::move(times)).Run(end);
}

}  // namespace zg
