#include "framework/runtime/save_checkpoint.h"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/check.h"
#include "framework/io/atomic_file.h"
#include "framework/io/checkpoint_checksums.h"
#include "framework/io/checkpoint_names.h"
#include "framework/io/durable_file.h"
#include "framework/io/sha256.h"
#include "framework/io/shard_layout.h"
#include "framework/runtime/tensor_state.h"

namespace zg {
namespace {

Status WriteText(const std::string& path, const std::string& text) {
  ZG_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  ZG_RETURN_IF_ERROR(file.Write(text.data(), text.size()));
  return file.Commit();
}

// A line: a checksum on its way between ranks.
std::string Pack(const FileChecksum& checksum) {
  return fmt::format("{} {}\n", checksum.bytes, checksum.sha256);
}

FileChecksum Unpack(const std::string& line) {
  const size_t space = line.find(' ');
  return {std::stoull(line.substr(0, space)), line.substr(space + 1)};
}

// One save on one rank. The methods are its phases; ranks agree after each.
class Save {
 public:
  Save(Executor& executor, CheckpointStore* store, const TrainState& state,
       const SaveOptions& options)
      : executor_(executor),
        communicator_(executor.communicator()),
        store_(store),
        state_(state),
        options_(options) {
    ZG_CHECK((store != nullptr) == is_main(), "the store belongs to rank 0");
  }

  Status Run() {
    ZG_RETURN_IF_ERROR(Agree(LayOut()));
    ZG_RETURN_IF_ERROR(Agree(CreateFiles()));
    ZG_RETURN_IF_ERROR(ShareDirectory());
    AtPoint("created");
    ZG_RETURN_IF_ERROR(Agree(WriteSlices()));
    AtPoint("written");
    ZG_RETURN_IF_ERROR(Agree(HashFiles()));
    ZG_RETURN_IF_ERROR(ShareChecksums());
    AtPoint("hashed");
    ZG_RETURN_IF_ERROR(Agree(Describe()));
    AtPoint("described");
    ZG_RETURN_IF_ERROR(Agree(Publish()));
    AtPoint("published");
    return Status::Ok();
  }

 private:
  struct Part {
    const char* name = nullptr;
    std::vector<const StoredTensor*> tensors;
    ShardLayout layout;
  };

  bool is_main() const { return communicator_.rank() == 0; }
  Status Agree(const Status& mine) { return ExchangeStatus(communicator_, "save", mine); }
  void AtPoint(std::string_view point) const {
    if (options_.at_point != nullptr) options_.at_point(point);
  }

  // The same on every rank.
  Status LayOut() {
    for (const auto& [name, role] : {std::pair(kModelPart, TensorRole::kParameter),
                                     std::pair(kOptimizerPart, TensorRole::kOptimizerState)}) {
      Part part;
      part.name = name;
      part.tensors = TensorsByName(executor_.graph(), role);
      std::vector<TensorOfFile> described;
      for (const StoredTensor* tensor : part.tensors) {
        ZG_CHECK(tensor->type.dtype == DType::kF32, "{} is not in f32", tensor->name);
        described.push_back({tensor->name, SafetensorsDType::kF32, tensor->type.shape.dims()});
      }
      ZG_ASSIGN_OR_RETURN(part.layout, MakeShardLayout(name, described, options_.max_shard_bytes));
      parts_.push_back(std::move(part));
    }
    for (const Part& part : parts_) {
      for (const ShardFile& file : part.layout.files) files_.push_back(&file);
    }
    return Status::Ok();
  }

  Status CreateFiles() {
    if (!is_main()) return Status::Ok();
    ZG_ASSIGN_OR_RETURN(directory_, store_->Begin(state_.step));
    for (const ShardFile* file : files_) {
      const std::string& prefix = file->layout.prefix;
      ZG_ASSIGN_OR_RETURN(DurableFile created,
                          DurableFile::Create(PathOf(file->name), file->layout.file_bytes()));
      ZG_RETURN_IF_ERROR(created.WriteAt(0, prefix.data(), prefix.size()));
      ZG_RETURN_IF_ERROR(created.Sync());
    }
    return Status::Ok();
  }

  Status ShareDirectory() {
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> directories,
                        communicator_.Exchange("directory of the checkpoint", directory_));
    directory_ = directories[0];
    return Status::Ok();
  }

  // Tensors that are whole on every rank take turns, so that all ranks have something to write.
  bool IsMine(const StoredTensor& tensor, size_t index) const {
    const bool is_whole = executor_.graph().LocalType(*tensor.storage) == tensor.storage->type;
    return !is_whole || static_cast<int>(index % communicator_.size()) == communicator_.rank();
  }

  Status WriteSlices() {
    for (const Part& part : parts_) {
      std::optional<DurableFile> file;
      int shard = -1;  // that `file` is; tensors of one shard follow each other
      for (size_t i = 0; i < part.tensors.size(); ++i) {
        const Executor::LocalPart slice = executor_.LocalPartOf(*part.tensors[i]);
        if (slice.count == 0 || !IsMine(*part.tensors[i], i)) continue;
        const TensorPlace& place = part.layout.places[i];
        if (place.shard != shard) {
          if (file) ZG_RETURN_IF_ERROR(file->Sync());
          shard = place.shard;
          ZG_ASSIGN_OR_RETURN(file, DurableFile::Open(PathOf(part.layout.files[shard].name)));
        }
        const uint64_t begin = place.offset_bytes + slice.begin * sizeof(float);
        const auto write = [&](uint64_t offset, const std::byte* data, size_t size_bytes) {
          return file->WriteAt(begin + offset, data, size_bytes);
        };
        ZG_RETURN_IF_ERROR(ReadLocalPart(executor_, *part.tensors[i], write));
      }
      if (file) ZG_RETURN_IF_ERROR(file->Sync());
    }
    return Status::Ok();
  }

  // Each rank those of some files.
  Status HashFiles() {
    for (size_t i = communicator_.rank(); i < files_.size(); i += communicator_.size()) {
      ZG_ASSIGN_OR_RETURN(const FileChecksum checksum, ChecksumOfFile(PathOf(files_[i]->name)));
      my_checksums_ += Pack(checksum);
    }
    return Status::Ok();
  }

  Status ShareChecksums() {
    ZG_ASSIGN_OR_RETURN(std::vector<std::string> lines,
                        communicator_.Exchange("checksums of the checkpoint", my_checksums_));
    for (size_t i = 0; i < files_.size(); ++i) {
      std::string& text = lines[i % communicator_.size()];
      const size_t end = text.find('\n');
      checksums_[files_[i]->name] = Unpack(text.substr(0, end));
      text.erase(0, end + 1);
    }
    return Status::Ok();
  }

  Status WriteDescribed(const std::string& name, const std::string& text) {
    checksums_[name] = {text.size(), Sha256Hex(text.data(), text.size())};
    return WriteText(PathOf(name), text);
  }

  Status Describe() {
    if (!is_main()) return Status::Ok();
    for (const Part& part : parts_) {
      ZG_RETURN_IF_ERROR(
          WriteDescribed(IndexName(part.name), TensorIndexAsJson(part.layout.index)));
    }
    ZG_RETURN_IF_ERROR(WriteDescribed(kTrainStateName, TrainStateAsJson(state_)));
    return WriteText(PathOf(kChecksumsName), ChecksumsAsJson(checksums_));  // makes it whole
  }

  Status Publish() {
    if (!is_main()) return Status::Ok();
    ZG_RETURN_IF_ERROR(store_->Publish(state_.step));
    return options_.keep == 0 ? Status::Ok() : store_->RemoveOlder(state_.step, options_.keep);
  }

  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }

  Executor& executor_;
  Communicator& communicator_;
  CheckpointStore* const store_;
  const TrainState& state_;
  const SaveOptions& options_;
  std::vector<Part> parts_;
  std::vector<const ShardFile*> files_;  // of all parts
  std::string directory_;                // temporary
  std::string my_checksums_;
  Checksums checksums_;
};

}  // namespace

Status SaveCheckpoint(Executor& executor, CheckpointStore* store, const TrainState& state,
                      const SaveOptions& options) {
  const Status status = Save(executor, store, state, options).Run();
  if (!status.ok() && store != nullptr) store->Discard(state.step);
  return status;
}

}  // namespace zg
