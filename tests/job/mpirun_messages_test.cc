#include "framework/job/mpirun_messages.h"

#include <gtest/gtest.h>

#include <string>

namespace zg {
namespace {

const std::string& Edge() {
  static const auto* const edge = new std::string(std::string(74, '-') + "\n");
  return *edge;
}

std::string Box(const std::string& text) { return Edge() + text + Edge(); }

// The text shown if `text` arrives in pieces of `piece_bytes`.
std::string Show(const std::string& text, size_t piece_bytes) {
  MpirunMessages messages;
  std::string shown;
  for (size_t begin = 0; begin < text.size(); begin += piece_bytes) {
    shown += messages.Filter(std::string_view(text).substr(begin, piece_bytes));
  }
  return shown + messages.Finish();
}

void ExpectShown(const std::string& text, const std::string& expected) {
  for (size_t piece_bytes : {size_t{1}, size_t{7}, size_t{75}, text.size() + 1}) {
    EXPECT_EQ(Show(text, piece_bytes), expected) << "in pieces of " << piece_bytes;
  }
}

TEST(MpirunMessages, PassesTheRanksOutput) {
  ExpectShown("", "");
  ExpectShown("a line\n\nanother", "a line\n\nanother");
  ExpectShown("\rstep 1\rstep 2\n", "\rstep 1\rstep 2\n");
  ExpectShown("---\n----------\n", "---\n----------\n");
  ExpectShown(std::string(75, '-') + "\n", std::string(75, '-') + "\n");
}

TEST(MpirunMessages, PassesAProgressBarAtOnce) {
  MpirunMessages messages;
  EXPECT_EQ(messages.Filter("\rstep 1"), "\rstep 1");
  EXPECT_EQ(messages.Filter("/2 ---"), "/2 ---");
  EXPECT_EQ(messages.Filter("\n--"), "\n");
  EXPECT_EQ(messages.Filter("x"), "--x");
}

TEST(MpirunMessages, DropsWhatOnlyRepeatsTheRanksError) {
  ExpectShown("rank 1: data loss\n" +
                  Box("MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n"
                      "with errorcode 1.\n\nNOTE: invoking MPI_ABORT causes\n") +
                  Box("Primary job  terminated normally, but 1 process returned\n"
                      "a non-zero exit code. Per user-direction, the job has been aborted.\n") +
                  "bye\n",
              "rank 1: data loss\nbye\n");
}

TEST(MpirunMessages, NamesTheRankThatEnded) {
  ExpectShown(Box("mpirun detected that one or more processes exited with non-zero status, thus "
                  "causing\nthe job to be terminated. The first process to do so was:\n\n"
                  "  Process name: [[6236,1],12]\n  Exit code:    3\n"),
              "rank 12 ended with exit code 3; the job was ended\n");
  ExpectShown(Box("mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 "
                  "(Killed).\n"),
              "rank 1 was ended by signal 9 (Killed); the job was ended\n");
  ExpectShown(Box("mpirun has exited due to process rank 2 with PID 0 on\nnode vm exiting "
                  "improperly. There are three reasons this could occur:\n"),
              "rank 2 left the job before its end, without an error; the job was ended\n");
}

TEST(MpirunMessages, RemembersTheFirstRankThatEnded) {
  MpirunMessages messages;
  EXPECT_FALSE(messages.first_end().has_value());
  messages.Filter(Box("Primary job  terminated normally, but 1 process returned\n"));
  EXPECT_FALSE(messages.first_end().has_value());
  messages.Filter(
      Box("mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 "
          "(Killed).\n"));
  messages.Filter(Box("MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\n"));
  ASSERT_TRUE(messages.first_end().has_value());
  EXPECT_EQ(messages.first_end()->rank, 1);
  EXPECT_EQ(messages.first_end()->host, "vm");
  EXPECT_EQ(messages.first_end()->how, "was ended by signal 9 (Killed)");
  MpirunMessages aborted;
  aborted.Filter(Box("MPI_ABORT was invoked on rank 13 in communicator MPI_COMM_WORLD\n"));
  EXPECT_EQ(aborted.first_end()->rank, 13);
  EXPECT_EQ(aborted.first_end()->how, "ended the job with an error");
}

TEST(MpirunMessages, NamesTheHostThatWasLost) {
  const std::string box =
      Box("ORTE has lost communication with a remote daemon.\n\n"
          "  HNP daemon   : [[3756,0],0] on node vm-a\n"
          "  Remote daemon: [[3756,0],1] on node 10.77.0.2\n\nThis is usually due to\n");
  ExpectShown(box, "the connection to host 10.77.0.2 was lost; the job was ended\n");
  MpirunMessages messages;
  EXPECT_EQ(messages.lost_host(), "");
  messages.Filter(box);
  EXPECT_EQ(messages.lost_host(), "10.77.0.2");
}

TEST(MpirunMessages, DropsThatASignalIsPassedOn) {
  ExpectShown("a\nmpirun: Forwarding signal 10 to job\nb\nmpirun: Forwarding",
              "a\nb\nmpirun: Forwarding");
  ExpectShown("mpirun: killing job...\nm\n", "mpirun: killing job...\nm\n");
}

TEST(MpirunMessages, KeepsOtherBoxes) {
  const std::string box = Box("There are not enough slots available in the system\n");
  ExpectShown(box, box);
  const std::string reworded = Box("processes exited with non-zero status\n");
  ExpectShown(reworded, reworded);
}

TEST(MpirunMessages, KeepsABoxThatNeverEnds) {
  const std::string open = Edge() + "MPI_ABORT was invoked\nand then nothing";
  ExpectShown(open, open);
  std::string text = Edge();
  for (int i = 0; i < 1000; ++i) text += "a line of a rank that draws lines\n";
  ExpectShown(text, text);
}

}  // namespace
}  // namespace zg
