// What a run reports of its trainer at the end: the memory that was planned and measured, and the digests
// of its last values.
#pragma once

#include "framework/base/status.h"
#include "framework/job/job.h"
#include "framework/job/report.h"
#include "framework/train/trainer.h"

namespace zg {

// Every rank must call these, in the same order.
Status ReportMemory(const Job& job, Trainer& trainer, Report* report);
Status ReportFinalState(Trainer& trainer, Report* report);

}  // namespace zg
