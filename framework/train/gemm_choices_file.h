// The file of `gemm_choices`: the fastest algorithm of a library for each product, by device and
// library version. A JSON object:
//
//   {"format_version": 1,
//    "choices": {"NVIDIA H200, cuBLASLt 130100": {
//      "bf16 (768, 768) x (3072, 768)^T + bias, at multiples of 16 bytes": {
//        "algorithm": "0000...", "check": "c0ffee42", "us": 12.5, "first_us": 13.75}}}}
//
// `check` is the first digits of the SHA-256 of device, product and algorithm, one per line. It is
// needed because the bytes of an algorithm go to the library unchecked.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/kernels/gemm_choices.h"

namespace zg {

using ChoicesOfProducts = std::map<std::string, GemmChoice>;
using ChoicesOfDevices = std::map<std::string, ChoicesOfProducts>;

std::string GemmChoicesAsJson(const ChoicesOfDevices& choices);

// `path` is only used in messages. Error: text that GemmChoicesAsJson did not write.
StatusOr<ChoicesOfDevices> ParseGemmChoices(const std::string& path, std::string_view text);

// A file that does not exist has no choices.
StatusOr<ChoicesOfDevices> ReadGemmChoices(const std::string& path);

// Adds these choices to the file, which is replaced atomically.
Status AddToGemmChoices(const std::string& path, const std::string& device,
                        const ChoicesOfProducts& choices);

}  // namespace zg
