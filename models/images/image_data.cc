#include "models/images/image_data.h"

#include <fmt/format.h>

namespace zg::models {

StatusOr<LabelledImages> ReadImages(FashionMnistPart part, const std::string& directory,
                                    int64_t count) {
  StatusOr<LabelledImages> images = read_fashion_mnist(part, directory);
  ZG_RETURN_IF_ERROR(images.status().WithContext("--data"));
  if (images->count == 0) {
    return InvalidArgument("--data: {}: got no image, expected some in each part", directory);
  }
  if (count > 0 && count < images->count) {
    images->count = count;
    images->pixels.resize(count * images->height * images->width);
    images->labels.resize(count);
  }
  return images;
}

StatusOr<SampleOrder> TrainingOrder(const Job& job, const LabelledImages& images,
                                    bool drops_partial_step) {
  SampleOrderOptions options;
  options.num_samples = images.count;
  options.batch = job.options().batch;
  options.micro_batches = job.options().compile.micro_batches;
  options.seed = job.options().seed;
  options.drops_partial_step = drops_partial_step && !job.options().plan;
  StatusOr<SampleOrder> order = SampleOrder::create(options);
  ZG_RETURN_IF_ERROR(order.status().WithContext(
      fmt::format("--batch {} with --micro-batches {}", options.batch, options.micro_batches)));
  return order;
}

}  // namespace zg::models
