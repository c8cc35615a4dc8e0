#include "src/sim/models/sim_memory_model.h"

#include <algorithm>
#include <unordered_map>

#include "src/sim/machine/travel.h"

namespace etude {
namespace {

class AstraRemoteMemory final : public SimMemoryModel {
 public:
  explicit AstraRemoteMemory(const RemoteMemory& memory) : memory_(memory) {}

  std::string_view name() const override { return "astra-sim-2.0/remote-memory"; }
  std::optional<int64_t> Time(int64_t rank, int64_t bytes, int64_t now) override {
    const int64_t time =
        memory_.latency + WholeNanos(static_cast<double>(bytes) / memory_.bandwidth);
    int64_t queue = 0;  // accesses of a queue are serialized
    switch (memory_.kind) {
      case RemoteMemoryKind::kNone: return std::nullopt;
      case RemoteMemoryKind::kPerNpu: return time;
      case RemoteMemoryKind::kPerNode: queue = rank / memory_.npus_per_node; break;
      case RemoteMemoryKind::kPool: break;
    }
    int64_t& free_at = free_at_[queue];
    free_at = std::max(free_at, now) + time;
    return free_at - now;
  }

 private:
  const RemoteMemory memory_;
  std::unordered_map<int64_t, int64_t> free_at_;  // by queue
};

}  // namespace

std::unique_ptr<SimMemoryModel> MakeSimMemoryModel(const RemoteMemory& memory) {
  return std::make_unique<AstraRemoteMemory>(memory);
}

}  // namespace etude
