// PriceList: the times of a program's nodes on a machine, taken from the profile of a run there.
//
// The price of a node is the time of the calls of its op in its section with the same local types.
// If there were none, it is the time of the op's calls in that section (or else in any) per
// floating-point operation, or per byte of inputs and outputs if the op counts no operations; calls
// below 10 us give no such rate.
//
// Transfers have prices for the number of ranks and the hosts of the run alone: the time of the same
// transfer, or else what the op's transfers took per byte that they sent, or all if those sent less
// than 4 KiB each. For other ranks the time follows from the machine's links (time_estimate.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/runtime/profile.h"
#include "framework/tensor/dtype.h"

namespace zg::plan {

// The ranks of the run that prices were taken from.
struct ProfiledRanks {
  std::vector<int> hosts = {};  // of each rank, by their numbers
  // Whether a rank has a processor that its threads leave alone, which transfers can take.
  bool have_free_processors = true;
};

class PriceList {
 public:
  // The settings of a run that its times depend on.
  struct RunSettings {
    int threads = 1;  // of a rank
    DType dtype = DType::kF32;
  };

  // Reads the report of a run with `profile`. Errors, which name the file: it cannot be read; it is
  // not a report, or one without a profile, or with the profile of only a first step, which warms
  // up; its settings differ from those of the run to be priced.
  static StatusOr<PriceList> Read(const std::string& path, const RunSettings& settings);

  PriceList(const Profile& profile, std::string source, ProfiledRanks ranks = {});

  const std::string& source() const { return source_; }  // the file

  enum class Basis { kSameTypes, kRate, kNone };
  struct Price {
    double ms = 0;  // of one call
    Basis basis = Basis::kNone;
  };
  Price Of(const ir::Graph& graph, const ir::Node& node) const;

  const ProfiledRanks& ranks() const { return ranks_; }
  bool HasTransfersBetween(const std::vector<int>& hosts) const {
    return hosts == ranks_.hosts && !transfers_by_op_.empty();
  }
  struct TransferPrice {
    double ms = 0;            // of one call, including the wait for other ranks
    double processor_ms = 0;  // the part of it in which a processor works
    Basis basis = Basis::kNone;
  };
  // In a graph for those ranks (HasTransfersBetween).
  TransferPrice OfTransfer(const ir::Graph& graph, const ir::Node& node) const;

  // The time that a step takes beside its nodes, such as setting inputs, per launched kernel.
  double ms_between_kernels() const { return ms_between_kernels_; }

 private:
  struct Sum {
    double calls = 0, ms = 0, flops = 0, bytes = 0;
    void Add(const ProfileCalls& calls);
    bool HasRate() const;  // whether calls take long enough to give a rate
  };
  const Sum* FindRate(const std::string& op, const std::string& section) const;

  struct TransferSum {
    double calls = 0, ms = 0, processor_ms = 0, bytes = 0;
    void Add(const ProfileTransfers& transfers);
  };

  std::string source_;
  ProfiledRanks ranks_;
  double ms_between_kernels_ = 0;
  std::map<std::tuple<std::string, std::string, std::string>, Sum> by_types_;  // op, section, types
  std::map<std::pair<std::string, std::string>, Sum> by_section_;              // op, section
  std::map<std::string, Sum> by_op_;
  std::map<std::tuple<std::string, std::string, std::string>, TransferSum> transfers_by_types_;
  std::map<std::string, TransferSum> transfers_by_op_;
  TransferSum all_transfers_;
};

}  // namespace zg::plan
