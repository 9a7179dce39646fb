// The median of measurements.
#pragma once

#include <vector>

namespace zg {

// Of an even number the mean of the two in the middle; 0 of none.
double Median(std::vector<double> values);

}  // namespace zg
