// The median of measurements.
#pragma once

#include <vector>

namespace zg {

// For an even number of values the mean of the two in the middle; 0 for none.
double Median(std::vector<double> values);

}  // namespace zg
