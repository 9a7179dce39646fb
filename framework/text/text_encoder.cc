#include "framework/text/tokenizer.h"
#include "framework/text/tokenizer_state.h"
#include "framework/text/word_cache.h"

namespace zg {
namespace {

constexpr size_t kIdsPerPiece = 1 << 14;
constexpr size_t kMaxWordBytes = (size_t{1} << 31) - 1;

}  // namespace

class TextEncoder::Impl {
 public:
  explicit Impl(const Tokenizer& tokenizer) : state_(tokenizer.state_), words_(state_->rules) {}

  Status Encode(std::string_view text, const Sink& sink) {
    sink_ = &sink;
    status_ = Status::Ok();
    ids_.clear();
    ZG_RETURN_IF_ERROR(words_.Visit(
        text, [this](std::string_view word) { EncodeWord(word); },
        [this](const AddedToken& token) { ids_.push_back(token.id); }));
    if (!ids_.empty()) Flush();
    return status_;
  }

 private:
  void EncodeWord(std::string_view word) {
    if (!status_.ok()) return;
    if (WordCache::Fits(word)) {
      WordCache::Entry* const entry = cache_.PlaceOf(word);
      if (WordCache::Has(*entry, word)) {
        ids_.insert(ids_.end(), entry->ids, entry->ids + entry->num_ids);
      } else {
        const size_t before = ids_.size();
        state_->model.EncodeWord(word, &scratch_, &ids_);
        WordCache::Put(word, ids_.data() + before, ids_.size() - before, entry);
      }
    } else if (word.size() <= kMaxWordBytes) {
      state_->model.EncodeWord(word, &scratch_, &ids_);
    } else {
      status_ = InvalidArgument("{}: got a word of {} bytes, expected fewer than 2^31",
                                state_->path, word.size());
    }
    if (ids_.size() >= kIdsPerPiece) Flush();
  }

  void Flush() {
    if (status_.ok()) status_ = (*sink_)(ids_);
    ids_.clear();
  }

  const std::shared_ptr<const Tokenizer::State> state_;
  TextWords words_;
  WordCache cache_;
  BpeModel::Scratch scratch_;
  std::vector<uint32_t> ids_;  // not yet passed to the sink
  const Sink* sink_ = nullptr;
  Status status_;
};

TextEncoder::TextEncoder(const Tokenizer& tokenizer) : impl_(std::make_unique<Impl>(tokenizer)) {}
TextEncoder::TextEncoder(TextEncoder&& other) noexcept = default;
TextEncoder::~TextEncoder() = default;

Status TextEncoder::encode(std::string_view text, const Sink& sink) {
  return impl_->Encode(text, sink);
}

StatusOr<std::vector<uint32_t>> TextEncoder::encode(std::string_view text) {
  std::vector<uint32_t> all;
  ZG_RETURN_IF_ERROR(impl_->Encode(text, [&](const std::vector<uint32_t>& ids) {
    all.insert(all.end(), ids.begin(), ids.end());
    return Status::Ok();
  }));
  return all;
}

}  // namespace zg
