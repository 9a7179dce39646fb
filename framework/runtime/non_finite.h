// Finds infinities and NaN in memory and formats elements for messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/tensor/dtype.h"

namespace zg {

// The index of the first element that is infinite or NaN; none for integers.
std::optional<int64_t> FirstNonFinite(DType dtype, const void* data, int64_t num_elements);

std::optional<int64_t> FirstNan(DType dtype, const void* data, int64_t num_elements);  // likewise

// A floating-point element as text: "nan", "inf", "-inf" or its digits.
std::string ElementText(DType dtype, const void* data, int64_t index);

// The end of errors about values of a step.
inline constexpr char kNonFiniteHint[] =
    "\n  hint: `detect_anomaly` names the first node that computed an infinity or NaN; "
    "`on_non_finite=skip` leaves such updates out, ignore goes on";

}  // namespace zg
