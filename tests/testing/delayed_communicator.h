// A communicator over another one whose collectives take random times, so that in every run they
// overlap other parts of each rank's computation.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "framework/comm/communicator.h"
#include "tests/testing/communicator_over.h"

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

class DelayedGroup : public GroupOver {
 public:
  DelayedGroup(Group* group, int job_rank, TrafficMeter* traffic, unsigned seed, int most_us)
      : GroupOver(group, job_rank, traffic), sleep_(seed, most_us) {}

 protected:
  Status Around(CollectiveKind, const std::function<Status()>& call) override {
    sleep_();
    const Status status = call();
    sleep_();
    return status;
  }

 private:
  RandomSleep sleep_;
};

class DelayedCommunicator : public CommunicatorOver {
 public:
  // `host` must outlive this.
  DelayedCommunicator(Communicator* host, unsigned seed, int most_us)
      : CommunicatorOver(host), seed_(seed), most_us_(most_us), sleep_(seed, most_us) {}

  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override {
    sleep_();
    return CommunicatorOver::Exchange(name, mine);
  }
  Status ExchangeWord(std::string_view name, uint64_t mine, uint64_t* all) override {
    sleep_();
    return CommunicatorOver::ExchangeWord(name, mine, all);
  }
  bool can_have_threads() const override { return true; }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) override {
    ZG_ASSIGN_OR_RETURN(Group* const group, other().GroupOf(ranks, /*for_thread=*/true));
    return std::unique_ptr<Group>(std::make_unique<DelayedGroup>(
        group, rank(), &other().traffic_meter(), seed_ + ++num_groups_, most_us_));
  }

 private:
  const unsigned seed_;
  const int most_us_;
  unsigned num_groups_ = 0;
  RandomSleep sleep_;
};

}  // namespace zg::testing
