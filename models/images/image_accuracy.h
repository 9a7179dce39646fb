// The accuracy of a model on labelled images.
#pragma once

#include "framework/base/status.h"
#include "framework/io/idx_file.h"
#include "framework/job/job.h"
#include "framework/train/trainer.h"
#include "models/images/image_batches.h"

namespace zg::models {

// The share of `images` whose label is the largest result of the program "predict", (--batch,
// classes), for the input "x"; `batches` belong to these images. Ranks process micro-batches in
// turn; only the main rank counts, the others return 0.
StatusOr<double> Accuracy(const Job& job, Trainer& trainer, const LabelledImages& images,
                          const ImageBatches& batches);

}  // namespace zg::models
