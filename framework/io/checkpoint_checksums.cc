#include "framework/io/checkpoint_checksums.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "framework/io/checkpoint_names.h"
#include "framework/io/mapped_file.h"
#include "framework/io/safetensors_header.h"
#include "framework/io/sha256.h"
#include "framework/io/strict_json.h"

namespace zg {
namespace {

constexpr size_t kReadChunkBytes = size_t{1} << 20;
constexpr size_t kDigestDigits = 64;

bool IsDigest(const std::string& text) {
  return text.size() == kDigestDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

std::string ChecksumsAsJson(const Checksums& checksums) {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const auto& [name, checksum] : checksums) {
    files[name] = {{"bytes", checksum.bytes}, {"sha256", checksum.sha256}};
  }
  return nlohmann::ordered_json{{"files", std::move(files)}}.dump(2) + "\n";
}

StatusOr<Checksums> ReadChecksums(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  ZG_RETURN_IF_ERROR(CheckJsonBytes(path, file.size()));
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  ZG_ASSIGN_OR_RETURN(const nlohmann::json json, ParseStrictJson(path, text));
  const auto files = json.find("files");
  if (files == json.end() || !files->is_object()) {
    return DataLoss("{}: \"files\": expected an object", path);
  }
  Checksums checksums;
  for (const auto& [name, record] : files->items()) {
    const bool is_complete = record.is_object() && record.contains("bytes") &&
                             record["bytes"].is_number_unsigned() && record.contains("sha256") &&
                             record["sha256"].is_string();
    if (!is_complete || !IsPlainFileName(name) ||
        !IsDigest(record["sha256"].get_ref<const std::string&>())) {
      return DataLoss("{}: file {}: expected its \"bytes\" and \"sha256\"", path,
                      QuoteForMessage(name));
    }
    checksums[name] = {record["bytes"].get<uint64_t>(), record["sha256"].get<std::string>()};
  }
  if (ChecksumsAsJson(checksums) != text) {
    return DataLoss("{}: the text is not as it was written; the file is damaged", path);
  }
  return checksums;
}

StatusOr<FileChecksum> ChecksumOfFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const auto failed = [&](int error) -> Status {
    if (file >= 0) close(file);
    if (error == ENOENT) return NotFound("{}: no such file", path);
    return FailedPrecondition("{}: cannot be read: {}", path, std::strerror(error));
  };
  if (file < 0) return failed(errno);
  struct stat info;
  if (fstat(file, &info) != 0) return failed(errno);
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {  // reading a directory says what it is
    close(file);
    return InvalidArgument("{}: got a device or pipe, expected a regular file", path);
  }
  posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
  std::vector<char> chunk(kReadChunkBytes);
  Sha256 sha256;
  FileChecksum checksum;
  while (true) {
    const ssize_t count = read(file, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(errno);
    if (count == 0) break;
    sha256.Update(chunk.data(), static_cast<size_t>(count));
    checksum.bytes += static_cast<uint64_t>(count);
  }
  close(file);
  checksum.sha256 = sha256.HexDigest();
  return checksum;
}

Status CheckFile(const std::string& path, const FileChecksum& expected) {
  const auto check_bytes = [&](uint64_t bytes) {
    if (bytes == expected.bytes) return Status::Ok();
    return DataLoss("{}: got {} bytes, expected {}; the file is damaged", path, bytes,
                    expected.bytes);
  };
  // Before a file is read that may be far too long.
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (!error) ZG_RETURN_IF_ERROR(check_bytes(bytes));
  ZG_ASSIGN_OR_RETURN(const FileChecksum found, ChecksumOfFile(path));
  ZG_RETURN_IF_ERROR(check_bytes(found.bytes));
  if (found.sha256 != expected.sha256) {
    return DataLoss("{}: its sha256 is {}, expected {}; the file is damaged", path, found.sha256,
                    expected.sha256);
  }
  return Status::Ok();
}

}  // namespace zg
