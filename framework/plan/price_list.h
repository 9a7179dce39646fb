// PriceList: the times of a program's nodes on a machine, taken from the profile of a run there.
//
// The price of a node is the time of the calls of its op in its section with the same local types.
// If there were none, it is the time of the op's calls in that section (or else in any) per
// floating-point operation, or per byte of inputs and outputs if the op counts no operations; calls
// below 10 us give no such rate. Transfers have no price here: their time follows from the
// machine's links (time_estimate.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/runtime/profile.h"
#include "framework/tensor/dtype.h"

namespace zg::plan {

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

  PriceList(const Profile& profile, std::string source);

  const std::string& source() const { return source_; }  // the file

  enum class Basis { kSameTypes, kRate, kNone };
  struct Price {
    double ms = 0;  // of one call
    Basis basis = Basis::kNone;
  };
  Price Of(const ir::Graph& graph, const ir::Node& node) const;

  // The time that a step takes beside its nodes, such as setting inputs, per launched kernel.
  double ms_between_kernels() const { return ms_between_kernels_; }

 private:
  struct Sum {
    double calls = 0, ms = 0, flops = 0, bytes = 0;
    void Add(const ProfileCalls& calls);
    bool HasRate() const;  // whether calls take long enough to give a rate
  };
  const Sum* FindRate(const std::string& op, const std::string& section) const;

  std::string source_;
  double ms_between_kernels_ = 0;
  std::map<std::tuple<std::string, std::string, std::string>, Sum> by_types_;  // op, section, types
  std::map<std::pair<std::string, std::string>, Sum> by_section_;              // op, section
  std::map<std::string, Sum> by_op_;
};

}  // namespace zg::plan
