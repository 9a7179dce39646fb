// Where the images of a demo come from, and in which order training sees them. Errors name the flags.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/status.h"
#include "framework/data/sample_order.h"
#include "framework/io/idx_file.h"
#include "framework/job/job.h"

namespace zg::models {

// A part of Fashion-MNIST in the directory that --data names; of its images the first `count`, where it is
// not 0 and there are more. Errors: those of read_fashion_mnist; no image.
StatusOr<LabelledImages> ReadImages(FashionMnistPart part, const std::string& directory,
                                    int64_t count = 0);

// The order of training by the flags of the job. `drops_partial_step` as in SampleOrderOptions. For --plan,
// which trains nothing, it is any order: a plan may be of more ranks than there are images for.
StatusOr<SampleOrder> TrainingOrder(const Job& job, const LabelledImages& images,
                                    bool drops_partial_step);

}  // namespace zg::models
