#include "framework/comm/cuda_peers.h"

#include <utility>
#include <vector>

#include "framework/comm/cuda/cuda_driver_lazy.h"
#include "framework/comm/cuda/cuda_peer_arena.h"
#include "framework/comm/cuda/cuda_peer_group.h"
#include "framework/comm/cuda/peer_mapping.h"
#include "framework/comm/cuda/stream_rendezvous.h"

namespace zg {
namespace {

class CudaPeerCommunicator : public Communicator {
 public:
  CudaPeerCommunicator(Device* device, ControlPlane* control, CudaPeerOptions options,
                       std::unique_ptr<PeerMapping> mapping,
                       std::unique_ptr<StreamRendezvous> rendezvous)
      : control_(*control),
        options_(std::move(options)),
        mapping_(std::move(mapping)),
        rendezvous_(std::move(rendezvous)),
        arena_(device, control, mapping_.get(), rendezvous_.get()),
        world_(AllRanks(size()), rank(), &arena_, rendezvous_.get(), &traffic_meter()) {}
  ~CudaPeerCommunicator() override { ReleaseGroups(); }

  int rank() const override { return control_.rank(); }
  int size() const override { return control_.size(); }
  StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    ZG_ASSIGN_OR_RETURN(CudaPeers peers, ConnectCudaPeers(&arena_.device(), &control_, options_));
    if (peers.communicator == nullptr) return FailedPrecondition("{}", peers.problem);
    return std::move(peers.communicator);
  }
  std::string_view transport() const override { return "peer memory"; }
  bool queues_on_device() const override { return true; }
  Arena& arena() override { return arena_; }
  Group& world() override { return world_; }
  Status Synchronize() override { return rendezvous_->Synchronize(); }
  Status WaitFor(DeviceEvent& event) override { return rendezvous_->WaitFor(event); }

  Status Barrier(std::string_view name) override { return control_.Barrier(name); }
  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override {
    return control_.Exchange(name, mine);
  }
  Status ExchangeWord(std::string_view name, uint64_t mine, uint64_t* all) override {
    return control_.ExchangeWord(name, mine, all);
  }
  void Abort(const Status& status) override { control_.Abort(status); }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) override {
    return std::unique_ptr<Group>(
        new CudaPeerGroup(ranks, rank(), &arena_, rendezvous_.get(), &traffic_meter()));
  }

 private:
  ControlPlane& control_;
  const CudaPeerOptions options_;
  const std::unique_ptr<PeerMapping> mapping_;
  const std::unique_ptr<StreamRendezvous> rendezvous_;
  CudaPeerArena arena_;
  CudaPeerGroup world_;
};

// Maps every rank's block, which is zeroed before any rank may use it.
StatusOr<std::vector<PeerBlock*>> MapBlocks(Device* device, ControlPlane* control,
                                            PeerMapping* mapping) {
  StatusOr<DeviceBytes> memory = device->Allocate(sizeof(PeerBlock));
  Status status = memory.status();
  if (status.ok()) status = device->Synchronize();
  ZG_RETURN_IF_ERROR(ExchangeStatus(*control, "allocate flags", status));
  ZG_ASSIGN_OR_RETURN(const std::vector<std::byte*> addresses,
                      mapping->Map("the flags", memory->get()));
  // It stays until the end of the process: whenever this rank leaves, another may still write to
  // it, to report that it has failed.
  memory->release();
  std::vector<PeerBlock*> blocks;
  for (std::byte* const address : addresses) {
    blocks.push_back(reinterpret_cast<PeerBlock*>(address));
  }
  return blocks;
}

}  // namespace

StatusOr<CudaPeers> ConnectCudaPeers(Device* device, ControlPlane* control,
                                     const CudaPeerOptions& options) {
  CudaPeers peers;
  const Status loaded = ExchangeStatus(*control, "load the CUDA driver", LoadCudaDriver());
  if (!loaded.ok()) {
    peers.problem = loaded.message();
    return peers;
  }
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<PeerMapping> mapping,
                      PeerMapping::Create(control, options.process));
  peers.problem = mapping->problem();
  if (!peers.problem.empty()) return peers;
  StatusOr<std::vector<PeerBlock*>> blocks = MapBlocks(device, control, mapping.get());
  if (!blocks.ok()) {
    peers.problem = blocks.status().message();
    return peers;
  }
  StatusOr<std::unique_ptr<StreamRendezvous>> rendezvous =
      StreamRendezvous::Create(device, control->rank(), std::move(*blocks), options.timeout_s);
  ZG_RETURN_IF_ERROR(
      ExchangeStatus(*control, "prepare the meeting of queues", rendezvous.status()));
  peers.communicator = std::make_unique<CudaPeerCommunicator>(
      device, control, options, std::move(mapping), std::move(*rendezvous));
  return peers;
}

}  // namespace zg
