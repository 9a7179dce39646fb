// GemmChoices: by which algorithm of its library a device multiplies each product. Kernels ask while
// they are made (KernelSpec::gemm_choices). A product that is not known yet is made by the library's
// own first choice, and says how it is measured: whoever makes the kernels then has it measured and
// makes them again (framework/train/measured_gemms.h).
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "framework/base/status.h"

namespace zg {

class Device;

struct GemmChoice {
  std::string algorithm;  // in the words of the library's kernels
  double us = 0;          // microseconds that the product takes by it
  double first_us = 0;    // by the library's own first choice
};

class GemmChoices {
 public:
  // The fastest algorithm for a product, by time on a device that does nothing else.
  using Measure = std::function<StatusOr<GemmChoice>(Device& device)>;

  // The choice for a product, whose name says all that decides which algorithms there are. Null: it
  // is to be measured.
  const GemmChoice* Find(const std::string& product, Measure measure);

  // Of products that are not known yet.
  void Add(const std::map<std::string, GemmChoice>& choices);

  // What Find did not find, by product.
  const std::map<std::string, Measure>& missing() const { return missing_; }

  // 12 hexadecimal digits of the products that Find found since Forget, and their algorithms.
  std::string FoundDigest() const;
  void ForgetFound() { found_.clear(); }

 private:
  std::map<std::string, GemmChoice> choices_;
  std::map<std::string, Measure> missing_;
  std::set<std::string> found_;
};

}  // namespace zg
