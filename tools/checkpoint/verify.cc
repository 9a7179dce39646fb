#include <fmt/format.h>

#include "framework/base/format.h"
#include "framework/io/checkpoint_reader.h"
#include "tools/checkpoint/commands.h"

namespace zg::checkpoint_tool {

StatusOr<std::string> Verify(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const CheckpointReader checkpoint, CheckpointReader::Open(path));
  ZG_RETURN_IF_ERROR(checkpoint.CheckData());
  uint64_t bytes = 0;
  for (const auto& [name, checksum] : checkpoint.checksums()) bytes += checksum.bytes;
  return fmt::format("{}: step {}, {} tensors in {} files, {}: whole\n", checkpoint.directory(),
                     checkpoint.state().step, checkpoint.tensors().size(),
                     checkpoint.checksums().size(), FormatBytes(static_cast<int64_t>(bytes)));
}

}  // namespace zg::checkpoint_tool
