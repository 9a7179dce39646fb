// The records of TensorBoard's event files: messages of the protocol buffer Event, each with its
// length and checksums (TFRecord). A file begins with VersionEvent.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/value_histogram.h"

namespace zg {

struct NamedScalar {
  std::string name;
  double value = 0;
};

// The first record of a file. Times are seconds since 1970.
std::string VersionEvent(double time_s);

// Marks the first step of a run: readers drop values of this and later steps from earlier files.
std::string RunStartEvent(double time_s, int64_t first_step);

// Values of one step, as f32.
std::string ScalarsEvent(double time_s, int64_t step, const std::vector<NamedScalar>& scalars);

// Histograms of one step, by name.
std::string HistogramsEvent(double time_s, int64_t step,
                            const std::map<std::string, ValueHistogram>& histograms);

}  // namespace zg
