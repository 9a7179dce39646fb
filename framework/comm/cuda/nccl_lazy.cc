#include "framework/comm/cuda/nccl_lazy.h"

#include <nccl.h>

#include "framework/device/cuda/lazy_library.h"

namespace zg {
namespace {

const LazyLibrary& Nccl() {
  static const LazyLibrary* const library = new LazyLibrary("libnccl.so.2");
  return *library;
}

}  // namespace

Status LoadNccl() {
  if (Nccl().problem().empty()) return Status::Ok();
  return FailedPrecondition(
      "`gpu_collectives=nccl`: NCCL cannot be loaded: {}, or use `gpu_collectives=host`",
      Nccl().problem());
}

}  // namespace zg

// The linker reports a function that is missing here.
#define ZG_CALL(name, ...)                                             \
  static const auto function = zg::Nccl().Find<decltype(name)>(#name); \
  return zg::CallOr(ncclSystemError, function, ##__VA_ARGS__)

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) { ZG_CALL(ncclGetUniqueId, id); }

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int num_ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  ZG_CALL(ncclCommInitRankConfig, comm, num_ranks, id, rank, config);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* group,
                           ncclConfig_t* config) {
  ZG_CALL(ncclCommSplit, comm, color, key, group, config);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) { ZG_CALL(ncclCommFinalize, comm); }

ncclResult_t ncclCommDestroy(ncclComm_t comm) { ZG_CALL(ncclCommDestroy, comm); }

ncclResult_t ncclCommAbort(ncclComm_t comm) { ZG_CALL(ncclCommAbort, comm); }

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  ZG_CALL(ncclCommGetAsyncError, comm, error);
}

const char* ncclGetErrorString(ncclResult_t result) {
  static const auto function = zg::Nccl().Find<decltype(ncclGetErrorString)>("ncclGetErrorString");
  return function == nullptr ? "it is not loaded" : function(result);
}

const char* ncclGetLastError(ncclComm_t comm) {
  static const auto function = zg::Nccl().Find<decltype(ncclGetLastError)>("ncclGetLastError");
  return function == nullptr ? "" : function(comm);
}

ncclResult_t ncclGroupStart() { ZG_CALL(ncclGroupStart); }

ncclResult_t ncclGroupEnd() { ZG_CALL(ncclGroupEnd); }

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  ZG_CALL(ncclSend, data, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  ZG_CALL(ncclRecv, data, count, type, peer, comm, stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  ZG_CALL(ncclAllGather, from, to, count, type, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  ZG_CALL(ncclReduceScatter, from, to, count, type, operation, comm, stream);
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  ZG_CALL(ncclAllReduce, from, to, count, type, operation, comm, stream);
}

}  // extern "C"
