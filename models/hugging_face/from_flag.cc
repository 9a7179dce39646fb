#include "models/hugging_face/from_flag.h"

namespace zg::models {

Status CheckFromAlone(const Job& job, const std::string& from) {
  if (job.options().init.empty()) return Status::Ok();
  return InvalidArgument("--init: --from {} gives first values already; leave one of them out",
                         from);
}

Status LoadFrom(const Job& job, const std::string& from, Trainer& trainer) {
  if (from.empty() || !job.options().resume.empty()) return Status::Ok();
  return trainer.load_parameters(from).WithContext("--from");
}

}  // namespace zg::models
