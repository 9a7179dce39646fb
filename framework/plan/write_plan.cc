#include "framework/plan/write_plan.h"

#include "framework/io/atomic_file.h"
#include "framework/plan/html_report.h"
#include "framework/plan/json_report.h"

namespace zg::plan {

Status WritePlan(const PlanReport& report, const std::string& json_path,
                 const std::string& html_path) {
  if (!json_path.empty()) ZG_RETURN_IF_ERROR(WriteFileAtomically(json_path, JsonReport(report)));
  if (!html_path.empty()) ZG_RETURN_IF_ERROR(WriteFileAtomically(html_path, HtmlReport(report)));
  return Status::Ok();
}

}  // namespace zg::plan
