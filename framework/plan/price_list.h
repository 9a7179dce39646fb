// PriceList: what the nodes of a program take on a machine, as the profile of a run there says.
//
// A node takes as long as the calls of its op in its section that saw the same local types. Where there
// were none it takes what the op's calls in that section (or else in any) took per floating-point
// operation, or per byte of inputs and outputs if the op counts no operations; calls below 10 us have no
// such rate. Transfers have no price
// here: they are those of a machine's links (time_estimate.h).
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

  // From the report of a run with `profile`. Errors, which name the file: it cannot be read; it is no report, or one
  // without a profile, or with that of a first step, which warms up; another run's settings than those
  // of the run that is priced.
  static StatusOr<PriceList> Read(const std::string& path, const RunSettings& settings);

  PriceList(const Profile& profile, std::string source);

  const std::string& source() const { return source_; }  // the file

  enum class Basis { kSameTypes, kRate, kNone };
  struct Price {
    double ms = 0;  // of one call
    Basis basis = Basis::kNone;
  };
  Price Of(const ir::Graph& graph, const ir::Node& node) const;

  // What a step takes beside its nodes, such as setting inputs, for each kernel that it starts.
  double ms_between_kernels() const { return ms_between_kernels_; }

 private:
  struct Sum {
    double calls = 0, ms = 0, flops = 0, bytes = 0;
    void Add(const ProfileCalls& calls);
    bool HasRate() const;  // whether calls take long enough for one to mean anything
  };
  const Sum* FindRate(const std::string& op, const std::string& section) const;

  std::string source_;
  double ms_between_kernels_ = 0;
  std::map<std::tuple<std::string, std::string, std::string>, Sum> by_types_;  // op, section, types
  std::map<std::pair<std::string, std::string>, Sum> by_section_;              // op, section
  std::map<std::string, Sum> by_op_;
};

}  // namespace zg::plan
