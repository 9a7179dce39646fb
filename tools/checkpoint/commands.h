// The commands of //tools:checkpoint, which return text. `path` is a checkpoint's directory or one
// with `latest`, as for --resume.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/status.h"
#include "framework/io/safetensors_dtype.h"
#include "tools/checkpoint/foreign_names.h"

namespace zg::checkpoint_tool {

// Step, settings, and every tensor with its shape, bytes and file.
StatusOr<std::string> Inspect(const std::string& path);

// Checks the structure and every byte against its checksum; the text says what was checked.
StatusOr<std::string> Verify(const std::string& path);

struct Difference {
  bool is_same = false;  // step, settings and every bit of every tensor
  std::string text;
};

// The tensors and settings in which two checkpoints differ, and by how much. Damaged data is an
// error.
StatusOr<Difference> Diff(const std::string& path_a, const std::string& path_b);

struct ConvertOptions {
  std::string format;           // of the other program: gpt2, sequential, classifier
  Side source = Side::kTheirs;  // the side whose names and layout `from` has
  std::string from;             // in the form that Weights::Open takes
  std::string to;  // for the other side of gpt2: a directory that gets model.safetensors and
                   // config.json; else a safetensors file
  SafetensorsDType dtype = SafetensorsDType::kF32;
  int64_t vocabulary = 0;  // rows of the token embedding in `to`; 0: as many as in `from`
  int64_t heads = 0;       // for config.json; 0: the heads that the checkpoint was trained with
  bool may_replace = false;
};

// Writes the parameters of a model under another program's names and layout, or the reverse. Files
// on our side can be given to --init. The text reports the conversion.
StatusOr<std::string> Convert(const ConvertOptions& options);

struct ExportOptions {
  std::string from;  // a checkpoint
  std::string to;    // a safetensors file
  SafetensorsDType dtype = SafetensorsDType::kF32;
  bool with_optimizer = false;  // includes its state
  bool may_replace = false;
};

// Writes the tensors of a checkpoint into one file, under their names.
StatusOr<std::string> Export(const ExportOptions& options);

}  // namespace zg::checkpoint_tool
