// Any text as one of a checkpoint's small files, which the first byte selects: an error, or a value
// that is the same after it is written and read again.
#include <algorithm>
#include <string>

#include "framework/base/check.h"
#include "framework/io/checkpoint_checksums.h"
#include "framework/io/checkpoint_names.h"
#include "framework/io/strict_json.h"
#include "framework/io/tensor_index.h"
#include "framework/io/train_state.h"
#include "tests/fuzz/input_file.h"

namespace zg {
namespace {

// Reads `text` as a file, and writes the result with `write`.
template <typename Value>
void ReadWriteRead(StatusOr<Value> (*read)(const std::string& path),
                   std::string (*write)(const Value& value), const std::string& text) {
  const auto read_text = [&](const std::string& content) {
    const InputFile file(reinterpret_cast<const uint8_t*>(content.data()), content.size());
    return read(file.path());
  };
  const StatusOr<Value> value = read_text(text);
  if (!value.ok()) return;
  const std::string written = write(*value);
  const StatusOr<Value> again = read_text(written);
  ZG_CHECK(again.ok(), "what was written cannot be read: {}", again.status().message());
  ZG_CHECK(write(*again) == written, "written again it is another text");
}

void ReadJson(const std::string& text) {
  const StatusOr<nlohmann::json> json = ParseStrictJson("input", text);
  if (json.ok()) ZG_CHECK(json->is_object(), "it is no object");
}

void ReadStepDirectoryName(const std::string& name) {
  const std::optional<int64_t> step = ParseStepDirectoryName(name);
  if (step) ZG_CHECK(StepDirectoryName(*step) == name, "another name has the same step");
  if (step) ZG_CHECK(IsPlainFileName(name), "it is not the name of a file");
}

}  // namespace
}  // namespace zg

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0]) {
    case 'j':
      zg::ReadJson(text);
      break;
    case 'i':
      zg::ReadWriteRead(&zg::ReadTensorIndex, &zg::TensorIndexAsJson, text);
      break;
    case 't':
      zg::ReadWriteRead(&zg::ReadTrainState, &zg::TrainStateAsJson, text);
      break;
    case 'c':
      zg::ReadWriteRead(&zg::ReadChecksums, &zg::ChecksumsAsJson, text);
      break;
    case 'n':
      zg::ReadStepDirectoryName(text);
      break;
    default:
      break;
  }
  return 0;
}
