#include "tests/ops/cached_attention_cases.h"

namespace zg::testing {
namespace {

// Over zeros, or over the first input.
ReferenceOutputs WrittenRows(const ReferenceCall& call) {
  const bool has_cache = !call.attributes.Has("size");
  const ReferenceTensor& rows = call.inputs[has_cache ? 1 : 0];
  const ReferenceTensor& start = call.inputs[has_cache ? 2 : 1];
  const int64_t new_rows = rows.shape.dim(1), channels = rows.shape.dim(2);
  const int64_t size = has_cache ? call.inputs[0].shape.dim(1) : call.attributes.Int("size");
  std::vector<double> cache(rows.shape.dim(0) * size * channels);
  if (has_cache) cache = call.inputs[0].values;
  for (int64_t b = 0; b < rows.shape.dim(0); ++b) {
    for (int64_t i = 0; i < new_rows * channels; ++i) {
      const int64_t row = StartOf(start, b) + i / channels;
      cache[(b * size + row) * channels + i % channels] = rows.values[b * new_rows * channels + i];
    }
  }
  return {cache};
}

ReferenceOutputs MovedTexts(const ReferenceCall& call) {
  const ReferenceTensor& cache = call.inputs[0];
  const int64_t channels = cache.shape.dim(2);
  const int64_t text_size = cache.shape.dim(1) * channels;
  std::vector<double> moved = cache.values;
  for (int64_t b = 0; b < cache.shape.dim(0); ++b) {
    const auto parent = static_cast<int64_t>(call.inputs[1].values[b]);
    for (int64_t i = 0; i < text_size; ++i) {
      const bool is_before = i / channels < StartOf(call.inputs[2], b);
      if (is_before) moved[b * text_size + i] = cache.values[parent * text_size + i];
    }
  }
  return {moved};
}

// The rows of the first input, where there is a cache, and zeros for texts that begin.
ReferenceOutputs ReadRows(const ReferenceCall& call) {
  const int64_t texts = call.inputs[0].shape.dim(0);
  const bool has_cache = !call.attributes.Has("channels");
  const int64_t channels =
      has_cache ? call.inputs[0].shape.dim(2) : call.attributes.Int("channels");
  std::vector<double> rows(texts * channels);
  for (int64_t i = 0; i < texts * channels; ++i) {
    if (has_cache && StartOf(call.inputs[1], i / channels) != 0) rows[i] = call.inputs[0].values[i];
  }
  return {rows};
}

ReferenceOutputs KeptRows(const ReferenceCall& call) { return {call.inputs[0].values}; }

ReferenceOutputs PositionIds(const ReferenceCall& call) {
  std::vector<double> ids;
  for (const double start : call.inputs[0].values) {
    for (int64_t i = 0; i < call.attributes.Int("size"); ++i) {
      ids.push_back(start + static_cast<double>(i));
    }
  }
  return {ids};
}

// cached_rows and write_rows of `rows` in caches of `size` rows.
void AddWrites(const std::string& label, const Shape& rows, int64_t size, int64_t num_starts,
               std::vector<OpCase>* cases) {
  const InputSpec start = I64({num_starts}, size - rows.dim(1) + 1);
  const ir::Attributes cache = {{"name", std::string("keys")}, {"size", size}};
  cases->push_back({.op = "cached_rows",
                    .label = label,
                    .inputs = {F32(rows), start},
                    .attributes = cache,
                    .reference = WrittenRows});
  cases->push_back({.op = "write_rows",
                    .label = label,
                    .inputs = {F32({rows.dim(0), size, rows.dim(2)}), F32(rows), start},
                    .reference = WrittenRows});
}

// left_rows, read_rows and keep_rows of one row for each text.
void AddStates(const std::string& label, int64_t texts, int64_t num_starts,
               std::vector<OpCase>* cases) {
  const Shape rows = {texts, 1, 5};
  const ir::Attributes name = {{"name", std::string("state")}};
  ir::Attributes left = name;
  left.Set("channels", int64_t{5});
  cases->push_back({.op = "left_rows",
                    .label = label,
                    .inputs = {F32({texts, 3}), I64({num_starts}, 2)},
                    .attributes = left,
                    .reference = ReadRows});
  cases->push_back({.op = "read_rows",
                    .label = label,
                    .inputs = {F32(rows), I64({num_starts}, 2)},
                    .reference = ReadRows});
  cases->push_back({.op = "keep_rows",
                    .label = label,
                    .inputs = {F32(rows), I64({num_starts}, 1)},
                    .attributes = name,
                    .reference = KeptRows});
}

// Calls with parents, along heads.
void AddMoves(const std::string& label, const Shape& cache, int64_t num_starts,
              std::vector<OpCase>* cases) {
  const int64_t texts = cache.dim(0), size = cache.dim(1);
  const InputSpec parents = I64({texts}, texts);
  cases->push_back({.op = "move_texts",
                    .label = label,
                    .inputs = {F32(cache), parents, I64({num_starts}, size + 1)},
                    .reference = MovedTexts});
  cases->push_back({.op = "cached_rows",
                    .label = label + " with parents",
                    .inputs = {F32({texts, 2, cache.dim(2)}), I64({num_starts}, size - 1), parents},
                    .attributes = {{"name", std::string("keys")}, {"size", size}},
                    .reference = WrittenRows});
}

}  // namespace

FamilyCases CacheCases() {
  const ir::Attributes nine = {{"name", std::string("keys")}, {"size", int64_t{9}}};
  FamilyCases family = CachedAttentionCases();
  AddWrites("one start", {2, 3, 7}, 9, 1, &family.cases);
  AddWrites("starts", {3, 1, 6}, 5, 3, &family.cases);
  AddWrites("all rows", {1, 4, 5}, 4, 1, &family.cases);
  AddWrites("splits", {6, 2, 4}, 7, 1, &family.cases);
  AddWrites("splits", {6, 2, 4}, 7, 6, &family.cases);
  AddWrites("channels", {2, 2, 12}, 7, 2, &family.cases);
  AddWrites("channels", {2, 2, 12}, 7, 1, &family.cases);
  AddStates("starts", 4, 4, &family.cases);
  AddStates("splits", 6, 1, &family.cases);
  AddStates("splits", 6, 6, &family.cases);
  AddMoves("one start", {3, 5, 4}, 1, &family.cases);
  AddMoves("starts", {5, 4, 12}, 5, &family.cases);
  AddMoves("odd channels", {4, 3, 5}, 4, &family.cases);
  family.cases.push_back({.op = "left_rows",
                          .label = "parents",
                          .inputs = {F32({4, 3}), I64({4}, 2), I64({4}, 4)},
                          .attributes = {{"name", std::string("state")}, {"channels", int64_t{5}}},
                          .reference = ReadRows});
  family.cases.push_back({.op = "position_ids",
                          .label = "starts",
                          .inputs = {I64({6}, 100)},
                          .attributes = {{"size", int64_t{5}}},
                          .reference = PositionIds});
  const std::vector<Rejection> rejections = {
      {"cached_rows",
       {F32({3, 7}), I64({1}, 2)},
       nine,
       "cached_rows: rows are not (B, S, C): rows f32[3,7], start i64[1]"},
      {"cached_rows",
       {F32({2, 3, 7}), I64({3}, 2)},
       nine,
       "cached_rows: start is neither i64 (1) nor (B): rows f32[2,3,7], start i64[3]"},
      {"cached_rows",
       {F32({2, 10, 7}), I64({2}, 2)},
       nine,
       "cached_rows: the cache has 9 rows, which is less: rows f32[2,10,7], start i64[2]"},
      {"cached_rows",
       {F32({2, 3, 7}), I64({2}, 2), I64({1}, 2)},
       nine,
       "cached_rows: parents are not i64 (B): rows f32[2,3,7], start i64[2], parents i64[1]"},
      {"move_texts",
       {F32({2, 7}), I64({2}, 2), I64({1}, 2)},
       {},
       "move_texts: the cache is not (B, T, C): cache f32[2,7], parents i64[2], start i64[1]"},
      {"move_texts",
       {F32({2, 9, 7}), F32({2}), I64({1}, 2)},
       {},
       "move_texts: parents are not i64 (B): cache f32[2,9,7], parents f32[2], start i64[1]"},
      {"move_texts",
       {F32({2, 9, 7}), I64({2}, 2), I64({3}, 2)},
       {},
       "move_texts: start is neither i64 (1) nor (B): cache f32[2,9,7], parents i64[2], start "
       "i64[3]"},
      {"left_rows",
       {F32({2, 3}), I64({2}, 2), I64({3}, 2)},
       {{"name", std::string("state")}, {"channels", int64_t{5}}},
       "left_rows: parents are not i64 (B): texts f32[2,3], start i64[2], parents i64[3]"},
      {"write_rows",
       {F32({2, 9, 7}), F32({2, 3, 6}), I64({1}, 2)},
       {},
       "write_rows: cache and rows are not (B, T, C) and (B, S, C), S <= T: cache f32[2,9,7], rows "
       "f32[2,3,6], start i64[1]"},
      {"write_rows",
       {F32({2, 9, 7}), F32({2, 3, 7}), F32({1})},
       {},
       "write_rows: start is neither i64 (1) nor (B): cache f32[2,9,7], rows f32[2,3,7], start "
       "f32[1]"},
      {"left_rows",
       {F32({2, 3}), I64({3}, 2)},
       {{"name", std::string("state")}, {"channels", int64_t{5}}},
       "left_rows: start is neither i64 (1) nor (B): texts f32[2,3], start i64[3]"},
      {"left_rows",
       {F32({2, 3}), I64({2}, 2)},
       {{"name", std::string("state")}, {"channels", int64_t{0}}},
       "left_rows: channels is 0, expected at least 1"},
      {"read_rows",
       {F32({2, 2, 3}), I64({2}, 2)},
       {},
       "read_rows: rows are not (B, 1, C): cache f32[2,2,3], start i64[2]"},
      {"keep_rows",
       {F32({2, 3}), I64({2}, 1)},
       {{"name", std::string("state")}},
       "keep_rows: rows are not (B, 1, C): rows f32[2,3], start i64[2]"},
      {"position_ids",
       {F32({2})},
       {{"size", int64_t{5}}},
       "position_ids: start is not i64 (B): start f32[2]"},
      {"position_ids",
       {I64({2}, 9)},
       {{"size", int64_t{0}}},
       "position_ids: size is 0, expected size >= 1"}};
  family.rejections.insert(family.rejections.end(), rejections.begin(), rejections.end());
  const std::vector<OpCase> large = {
      Sized("write_rows", "wide", {F32({3, 70, 136}), F32({3, 33, 136}), I64({3}, 38)}),
      Sized("move_texts", "wide", {F32({5, 70, 136}), I64({5}, 5), I64({5}, 71)}),
      Sized("cached_rows", "wide", {F32({3, 33, 136}), I64({3}, 38)},
            {{"name", std::string("keys")}, {"size", int64_t{70}}}),
      Sized("position_ids", "many", {I64({3}, 1000)}, {{"size", int64_t{700}}})};
  family.large.insert(family.large.end(), large.begin(), large.end());
  const Shape cache = {1, 1024, 768};
  const std::vector<OpCase> bench = {
      Sized("move_texts", "four texts",
            {F32({4, 1024, 768}), I64({4}, 4), {{DType::kI64, {1}}, 1024, 1025}}),
      Sized("write_rows", "one row", {F32(cache), F32({1, 1, 768}), I64({1}, 1)})};
  family.bench.insert(family.bench.end(), bench.begin(), bench.end());
  family.exact_on_gpu = {"cached_rows", "move_texts", "write_rows",  "left_rows",
                         "read_rows",   "keep_rows",  "position_ids"};
  return family;
}

}  // namespace zg::testing
