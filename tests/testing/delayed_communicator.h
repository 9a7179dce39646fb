// A communicator over another one whose collectives take random times, so that every rank does what it
// does beside them at another moment in every run.
#pragma once

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "framework/comm/communicator.h"

namespace zg::testing {

// Sleeps for up to `most_us` microseconds; one time in four not at all.
class RandomSleep {
 public:
  RandomSleep(unsigned seed, int most_us) : generator_(seed), most_us_(most_us) {}
  void operator()() {
    if (generator_() % 4 == 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(generator_() % most_us_));
  }

 private:
  std::mt19937 generator_;
  const unsigned most_us_;
};

class DelayedGroup : public Group {
 public:
  DelayedGroup(Group* group, int job_rank, TrafficMeter* traffic, unsigned seed, int most_us)
      : Group(group->ranks(), job_rank, traffic), group_(*group), sleep_(seed, most_us) {}

  Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                       int64_t elements, ReductionTypes types, bool accumulate) override {
    return Delayed(
        [&] { return group_.ReduceScatter(name, input, output, elements, types, accumulate); });
  }
  Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                   int64_t part_bytes) override {
    return Delayed([&] { return group_.AllGather(name, input, output, part_bytes); });
  }
  Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output, int64_t elements,
                   ReductionTypes types, bool accumulate) override {
    return Delayed(
        [&] { return group_.AllReduce(name, input, output, elements, types, accumulate); });
  }
  Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                  int64_t part_bytes) override {
    return Delayed([&] { return group_.AllToAll(name, input, output, part_bytes); });
  }

 private:
  template <typename Call>
  Status Delayed(const Call& call) {
    sleep_();
    const Status status = call();
    sleep_();
    return status;
  }

  Group& group_;
  RandomSleep sleep_;
};

class DelayedCommunicator : public Communicator {
 public:
  // `host` outlives this.
  DelayedCommunicator(Communicator* host, unsigned seed, int most_us)
      : host_(*host), seed_(seed), most_us_(most_us), sleep_(seed, most_us) {}
  ~DelayedCommunicator() override { ReleaseGroups(); }

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  Status Barrier(std::string_view name) override { return host_.Barrier(name); }
  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override {
    sleep_();
    return host_.Exchange(name, mine);
  }
  Status ExchangeWord(std::string_view name, uint64_t mine, uint64_t* all) override {
    sleep_();
    return host_.ExchangeWord(name, mine, all);
  }
  void Abort(const Status& status) override { host_.Abort(status); }
  std::string_view transport() const override { return host_.transport(); }
  Arena& arena() override { return host_.arena(); }
  Group& world() override { return host_.world(); }
  bool can_have_threads() const override { return true; }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) override {
    ZG_ASSIGN_OR_RETURN(Group* const group, host_.GroupOf(ranks, /*for_thread=*/true));
    return std::unique_ptr<Group>(std::make_unique<DelayedGroup>(
        group, rank(), &host_.traffic_meter(), seed_ + ++num_groups_, most_us_));
  }

 private:
  Communicator& host_;
  const unsigned seed_;
  const int most_us_;
  unsigned num_groups_ = 0;
  RandomSleep sleep_;
};

}  // namespace zg::testing
