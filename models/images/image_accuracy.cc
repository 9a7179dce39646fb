#include "models/images/image_accuracy.h"

#include <algorithm>
#include <vector>

#include "framework/data/sample_order.h"

namespace zg::models {

StatusOr<double> Accuracy(const Job& job, Trainer& trainer, const LabelledImages& images,
                          const ImageBatches& batches) {
  SampleOrderOptions options;
  options.num_samples = images.count;
  options.batch = job.options().batch;
  options.micro_batches = job.num_data_ranks();
  options.shuffles = false;
  ZG_ASSIGN_OR_RETURN(const SampleOrder order, SampleOrder::create(options));
  ImageBatch batch;
  int64_t hits = 0;
  for (int64_t step = 0; step < order.steps_per_epoch(); ++step) {
    batches.Fill(order.at(step, job.data_rank()), options.batch, &batch);
    ZG_RETURN_IF_ERROR(trainer.eval("predict", {{"x", batch.x}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, trainer.result("predict"));
    if (!job.is_main()) continue;
    const auto classes =
        static_cast<int64_t>(logits.size()) / (options.batch * options.micro_batches);
    for (int64_t micro_batch = 0; micro_batch < options.micro_batches; ++micro_batch) {
      const std::vector<uint64_t> samples = order.at(step, micro_batch).samples;
      for (size_t row = 0; row < samples.size(); ++row) {
        const float* const of_row = logits.data() + (micro_batch * options.batch + row) * classes;
        const int64_t best = std::max_element(of_row, of_row + classes) - of_row;
        hits += best == images.labels[samples[row]] ? 1 : 0;
      }
    }
  }
  return static_cast<double>(hits) / static_cast<double>(images.count);
}

}  // namespace zg::models
