// What models/README.md documents as zg:: is reached through zerograph.h and its one dependency, in plain
// C++17: a small model of bytes from a mapped file, adapters in files, and texts that it writes.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "zerograph/zerograph.h"

namespace {

constexpr int64_t kBatch = 2, kContext = 4, kVocabulary = 256, kChannels = 8;

struct Model : zg::nn::Module {
  zg::nn::Embedding embedding{this, "embedding", kVocabulary, kChannels};
  zg::nn::CausalSelfAttention attention{this, "attention", kChannels, 2};
  zg::nn::Linear head{this, "head", kChannels, kVocabulary};
  zg::Var forward(zg::Var tokens) override { return head(attention(embedding(tokens))); }
};

struct Batch {
  std::vector<int64_t> x, y;
  std::vector<float> weights;
};

// Records of kContext tokens and the one behind them.
zg::StatusOr<zg::RecordFile> MakeRecords(const std::string& path) {
  std::ofstream(path) << "abcdebcdeacdeabdeabceabcd";
  return zg::RecordFile::open(path, kContext + 1);
}

zg::StatusOr<zg::SampleOrder> OrderOf(const zg::RecordFile& records, const zg::Job& job) {
  zg::SampleOrderOptions options;
  options.num_samples = records.size();
  options.batch = kBatch;
  options.micro_batches = job.num_data_ranks();
  return zg::SampleOrder::create(options);
}

zg::Status Run(zg::Job& job, const std::string& directory) {
  const std::string path = directory + "/records" + std::to_string(job.rank());
  ZG_ASSIGN_OR_RETURN(const zg::RecordFile records, MakeRecords(path));
  ZG_ASSIGN_OR_RETURN(const zg::SampleOrder order, OrderOf(records, job));
  const auto fill = [&](const zg::MicroBatch& from, Batch* to) {
    to->x.assign(kBatch * kContext, 0);
    to->y.assign(kBatch * kContext, 0);
    to->weights = from.weights(kBatch);
    for (int64_t row = 0; row < from.num_real(); ++row) {
      const uint8_t* const record = records[from.samples[row]];
      for (int64_t i = 0; i < kContext; ++i) {
        to->x[row * kContext + i] = record[i];
        to->y[row * kContext + i] = record[i + 1];
      }
    }
    return zg::Status::Ok();
  };
  zg::DataLoader<Batch> loader(order, job.data_rank(), 1, fill);

  Model model;
  zg::nn::LoraOptions lora_options;
  lora_options.rank = 2;
  zg::nn::Lora lora(lora_options);
  lora.adapt(model.head);
  zg::Graph graph("public_face");
  zg::ClassLossOptions per_token;
  per_token.reduction = zg::Reduction::kNone;
  graph.train(zg::optim::AdamW{0.01}, [&](zg::Inputs& in) {
    const zg::Var x = in.i64("x", {kBatch, kContext}), y = in.i64("y", {kBatch, kContext});
    const zg::Var rows = zg::mean(zg::cross_entropy(model(x), y, per_token), {-1});
    return zg::weighted_mean(rows, in.f32("weights", {kBatch}));
  });
  zg::optim::Muon muon;
  muon.lr = 0.02;
  graph.add_parameter_group({"projection", "attention.projection", muon});
  zg::GeneratorOptions sizes;
  sizes.context = kContext;
  zg::Generator generator(graph, sizes, [&](zg::Var tokens) { return model(tokens); });

  zg::Training training = zg::train(job, graph);
  zg::Trainer& trainer = training.trainer();
  while (training.next()) {
    // A factor of the program's own is multiplied with that of the flags' schedule.
    const bool keeps_parameters = training.step_number() == 2;
    trainer.set_lr_factor(keeps_parameters ? 0.0 : 1.0);
    ZG_ASSIGN_OR_RETURN(const zg::TensorDigest before, trainer.digest_parameters());
    training.step([&](int64_t micro_batch) -> zg::Status {
      ZG_ASSIGN_OR_RETURN(const Batch* const batch,
                          loader.load(training.step_number() - 1, micro_batch));
      return trainer.feed({{"x", batch->x}, {"y", batch->y}, {"weights", batch->weights}});
    });
    ZG_ASSIGN_OR_RETURN(const zg::TensorDigest after, trainer.digest_parameters());
    if (job.rank() == 0 && (after.sha256 == before.sha256) != keeps_parameters) {
      return zg::FailedPrecondition("another step than the second keeps the parameters");
    }
  }
  ZG_RETURN_IF_ERROR(zg::save_lora(trainer, lora, directory + "/adapters"));
  ZG_RETURN_IF_ERROR(zg::load_lora(trainer, lora, directory + "/adapters"));

  zg::GenerateOptions options;
  options.max_tokens = 2;
  options.sampler.temperature = 0.0;
  ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> text,
                      generator.generate(trainer, {'a', 'b'}, options));
  ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, generator.logits(trainer, {'a', 'b'}));
  ZG_ASSIGN_OR_RETURN(const zg::Sampler sampler, zg::Sampler::create(options.sampler));
  ZG_ASSIGN_OR_RETURN(const int64_t first, sampler.draw(logits, 0));
  if (text.size() == 2 && text[0] == first) return zg::Status::Ok();
  return zg::FailedPrecondition("the generator and the sampler draw different tokens");
}

// Files that are not there: the functions are, with errors that name the file.
bool NamesMissingFiles() {
  const auto names = [](const zg::Status& status) {
    return status.message().find("/no/such") != std::string::npos;
  };
  return names(zg::read_idx_file("/no/such").status()) &&
         names(zg::read_fashion_mnist(zg::FashionMnistPart::kTest, "/no/such").status()) &&
         names(zg::Tokenizer::open("/no/such").status());
}

}  // namespace

int main(int argc, char** argv) {
  zg::Job job = zg::Job::start(argc, argv);
  const char* const directory = std::getenv("TEST_TMPDIR");
  job.run([&](zg::Job& rank) { return Run(rank, directory == nullptr ? "." : directory); });
  return NamesMissingFiles() ? 0 : 1;
}
