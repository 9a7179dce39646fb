#include "framework/runtime/communication_queue.h"

#include "framework/base/check.h"

namespace zg {
namespace {

Status RunKernel(const Instruction& instruction, const StepContext& context) {
  const Status status = instruction.kernel->Run(instruction.Arguments(&context));
  return status.ok() ? status : status.WithContext(StepAndNode(instruction, context.step));
}

}  // namespace

CommunicationQueue::CommunicationQueue(int capacity, Profiler* profiler)
    : profiler_(profiler), ring_(capacity), thread_([this] { Run(); }) {
  ZG_CHECK(capacity > 0, "a queue of {}", capacity);
}

CommunicationQueue::~CommunicationQueue() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_ending_ = true;
  }
  started_.notify_one();
  thread_.join();
}

int64_t CommunicationQueue::Start(const Instruction* instruction, const StepContext& context) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto capacity = static_cast<int64_t>(ring_.size());
  done_.wait(lock, [&] { return num_started_ - num_done_ < capacity; });
  ring_[num_started_ % capacity] = {instruction, context};
  ++num_started_;
  lock.unlock();
  started_.notify_one();
  return num_started_;
}

Status CommunicationQueue::Wait(int64_t ticket) {
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [&] { return num_done_ >= ticket; });
  return error_;
}

void CommunicationQueue::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    started_.wait(lock, [&] { return num_done_ < num_started_ || is_ending_; });
    if (num_done_ == num_started_) return;
    const Work work = ring_[num_done_ % static_cast<int64_t>(ring_.size())];
    const bool runs = error_.ok();
    lock.unlock();
    const ir::Node& node = *work.instruction->node;
    const bool is_measured = profiler_ != nullptr && node.section->kind != ir::SectionKind::kEval;
    const auto begin = is_measured ? profiler_->BeginTransfer() : Profiler::TransferBegin();
    Status status = runs ? RunKernel(*work.instruction, work.context) : Status::Ok();
    if (is_measured) profiler_->EndTransfer(node, work.context.step, begin);
    lock.lock();
    if (runs) error_ = std::move(status);
    ++num_done_;
    done_.notify_all();
  }
}

}  // namespace zg
