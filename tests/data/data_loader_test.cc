#include "framework/data/data_loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/data/record_file.h"
#include "tests/io/test_file.h"

namespace zg {
namespace {

struct Batch {
  std::vector<uint64_t> samples;
};

Status Copy(const MicroBatch& from, Batch* to) {
  to->samples = from.samples;
  return Status::Ok();
}

SampleOrder Order(uint64_t num_samples, int64_t batch, int64_t micro_batches) {
  SampleOrderOptions options;
  options.num_samples = num_samples;
  options.batch = batch;
  options.micro_batches = micro_batches;
  return SampleOrder::create(options).value();
}

TEST(DataLoader, AnyNumberOfRanksHasTheSameMicroBatches) {
  const SampleOrder order = Order(50, 3, 6);
  for (const int64_t num_ranks : {1, 2, 3, 6}) {
    const int64_t per_rank = 6 / num_ranks;
    for (int64_t rank = 0; rank < num_ranks; ++rank) {
      DataLoader<Batch> loader(order, rank * per_rank, per_rank, Copy);
      for (int64_t step = 0; step < 2 * order.steps_per_epoch(); ++step) {
        for (int64_t m = rank * per_rank; m < (rank + 1) * per_rank; ++m) {
          const StatusOr<const Batch*> batch = loader.load(step, m);
          ASSERT_TRUE(batch.ok()) << batch.status().ToString();
          ASSERT_EQ((*batch)->samples, order.at(step, m).samples);
        }
      }
    }
  }
}

TEST(DataLoader, RanksTakeMicroBatchesInTurn) {
  const SampleOrder order = Order(50, 3, 6);
  for (const int64_t rank : {0, 1}) {
    DataLoader<Batch> loader(order, rank, /*per_rank=*/3, Copy, /*depth=*/2, /*distance=*/2);
    for (int64_t step = 0; step < order.steps_per_epoch(); ++step) {
      for (int64_t m = rank; m < 6; m += 2) {
        EXPECT_EQ(loader.load(step, m).value()->samples, order.at(step, m).samples);
      }
    }
  }
}

TEST(DataLoader, ResumesInTheMiddleOfAnEpochAndJumps) {
  const SampleOrder order = Order(50, 3, 4);
  DataLoader<Batch> loader(order, 2, 2, Copy);
  const int64_t first = order.step_at({2, 24}).value();
  for (const int64_t step : {first, first + 1, int64_t{0}, first + 7, first + 8}) {
    for (const int64_t m : {2, 3}) {
      EXPECT_EQ(loader.load(step, m).value()->samples, order.at(step, m).samples);
    }
  }
  EXPECT_EQ(loader.load(3, 3).value()->samples, order.at(3, 3).samples);
  EXPECT_EQ(loader.load(3, 2).value()->samples, order.at(3, 2).samples) << "out of order";
}

TEST(DataLoader, MakesBatchesAheadButNoMoreThanItMay) {
  std::atomic<int> num_made = 0;
  DataLoader<Batch> loader(
      Order(100, 1, 1), 0, 1,
      [&](const MicroBatch& from, Batch* to) {
        ++num_made;
        return Copy(from, to);
      },
      /*depth=*/3);
  const Batch* const first = loader.load(0, 0).value();
  const std::vector<uint64_t> samples = first->samples;
  while (num_made < 4) std::this_thread::yield();  // the first and three in advance
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_EQ(num_made, 4);
  EXPECT_EQ(first->samples, samples) << "it is the user's until the next call";
}

TEST(DataLoader, AnErrorComesWhereItsBatchWould) {
  const SampleOrder order = Order(100, 1, 1);
  DataLoader<Batch> loader(order, 0, 1, [&](const MicroBatch& from, Batch* to) {
    if (from.samples == order.at(3, 0).samples) return DataLoss("sample 3 is damaged");
    return Copy(from, to);
  });
  for (int64_t step = 0; step < 3; ++step) EXPECT_TRUE(loader.load(step, 0).ok());
  EXPECT_EQ(loader.load(3, 0).status().message(), "sample 3 is damaged");
  EXPECT_EQ(loader.load(4, 0).status().message(), "sample 3 is damaged");
  EXPECT_TRUE(loader.load(7, 0).ok()) << "asked for out of order it begins again";
}

TEST(DataLoader, EndsWhileBatchesAreBeingMade) {
  for (int i = 0; i < 50; ++i) {
    DataLoader<Batch> loader(Order(100, 1, 1), 0, 1, Copy);
    EXPECT_TRUE(i % 2 == 1 || loader.load(i, 0).ok());
  }
}

TEST(DataLoader, RefusesMicroBatchesThatAreNotTheRanks) {
  const SampleOrder order = Order(100, 1, 4);
  const auto error = [&](int64_t first, int64_t per_rank, int depth, int64_t distance) {
    DataLoader<Batch> loader(order, first, per_rank, Copy, depth, distance);
    return loader.load(0, first).status().message();
  };
  EXPECT_EQ(error(2, 2, 1, 1), "");
  EXPECT_EQ(error(1, 2, 1, 2), "");
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const std::vector<std::vector<int64_t>> wrong = {{3, 2, 1}, {4, 1, 1},    {-1, 1, 1},
                                                   {0, 0, 1}, {0, 1, 0},    {0, kMax, 1},
                                                   {1, 2, 3}, {0, 2, kMax}, {0, kMax, kMax}};
  for (const std::vector<int64_t>& numbers : wrong) {
    EXPECT_NE(error(numbers[0], numbers[1], 1, numbers[2]).find("some of the 4 of a step"),
              std::string::npos);
  }
  EXPECT_EQ(error(0, 1, 0, 1), "data: got a depth of 0, expected at least 1");
  DataLoader<Batch> loader(order, 2, 2, Copy);
  for (const auto& [step, micro_batch] : std::vector<std::pair<int64_t, int64_t>>{
           {-1, 2}, {kMax, 2}, {0, 1}, {0, 4}, {0, -kMax - 1}}) {
    EXPECT_FALSE(loader.load(step, micro_batch).ok());
  }
  EXPECT_EQ(loader.load(0, 1).status().message(),
            "data: got micro-batch 1 of step 0, expected one of this rank's 2 from 2 on, each 1 "
            "behind the one before");
  EXPECT_TRUE(loader.load(0, 3).ok());
}

TEST(RecordFile, HasSamplesBehindAHeader) {
  const std::string path = WriteTestFile("records", "HDabcdefghi");
  const StatusOr<RecordFile> file = RecordFile::open(path, 3, 2);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  ASSERT_EQ(file->size(), 3u);
  EXPECT_EQ(std::memcmp((*file)[1], "def", 3), 0);
  EXPECT_EQ(RecordFile::open(path, 4, 2).status().message(),
            path +
                ": got 11 bytes, expected 2 of a header and one or more records of 4; the file is "
                "truncated or has other records");
  EXPECT_FALSE(RecordFile::open(path, 3, 11).ok()) << "no record";
  EXPECT_EQ(RecordFile::open(path, 0).status().message(), path + ": got records of 0 bytes");
  EXPECT_EQ(RecordFile::open("/no/such", 1).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace zg
