// Any bytes as an IDX file, plain or gzipped: an error, or as many values as the dims say.
#include "framework/base/check.h"
#include "framework/io/idx_file.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const zg::InputFile input(data, size);
  const zg::StatusOr<zg::IdxFile> file = zg::read_idx_file(input.path());
  if (!file.ok()) {
    ZG_CHECK(!file.status().message().empty(), "an error says nothing");
    return 0;
  }
  uint64_t values = 1;
  for (const int64_t dim : file->shape) values *= static_cast<uint64_t>(dim);
  ZG_CHECK(file->values.size() == values, "{} values for {}", file->values.size(), values);
  return 0;
}
