// GemmChoices: the library algorithm with which a device multiplies each product. Kernels ask while
// they are made (KernelSpec::gemm_choices). A product that is not known yet uses the library's own
// first choice and registers how to measure it. The caller then has it measured and makes the
// kernels again (framework/train/measured_gemms.h).
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "framework/base/status.h"

namespace zg {

class Device;

struct GemmChoice {
  std::string algorithm;  // in the encoding of the library's kernels
  double us = 0;          // time of the product with it, in microseconds
  double first_us = 0;    // time with the library's own first choice
};

class GemmChoices {
 public:
  // Finds the fastest algorithm for a product by timing on an idle device.
  using Measure = std::function<StatusOr<GemmChoice>(Device& device)>;

  // The choice for a product, whose name contains everything that determines the available
  // algorithms. Null: it is yet to be measured.
  const GemmChoice* Find(const std::string& product, Measure measure);

  // Adds choices for products that are not known yet.
  void Add(const std::map<std::string, GemmChoice>& choices);

  // The products that Find did not find.
  const std::map<std::string, Measure>& missing() const { return missing_; }

  // 12 hexadecimal digits that identify the products that Find found since Forget, and their
  // algorithms.
  std::string FoundDigest() const;
  void ForgetFound() { found_.clear(); }

 private:
  std::map<std::string, GemmChoice> choices_;
  std::map<std::string, Measure> missing_;
  std::set<std::string> found_;
};

}  // namespace zg
