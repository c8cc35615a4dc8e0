#include "src/cli/memory.h"

#include <optional>
#include <utility>

#include "src/cli/inspect_ranks.h"
#include "src/formats/read_trace.h"
#include "src/report/memory_tables.h"

namespace etude {
namespace {

// Tensors are in the host trace, the allocators' events in the device trace.
RankInput HostAndDevice(const CaptureRank& rank) {
  if (rank.host.empty()) return RichestInput(rank);
  return {.rank = rank.rank, .path = rank.host, .device = rank.device};
}

Result<Inspected> Inspect(const Trace& trace, const RankInput& input, const ReadOptions& read,
                          const RunContext& context) {
  Inspected found;
  std::vector<MemorySource> sources;
  if (auto devices = TensorMemory(trace)) {
    sources.push_back({"tensors", &trace, std::move(*devices)});
    found.notes.emplace_back(
        "tensors give a lower bound: from what made them to their last recorded use");
  } else {
    found.notes.push_back("tensors: " + devices.error().message);
  }
  std::optional<Trace> device;
  if (!input.device.empty()) {
    ETUDE_ASSIGN_OR_RETURN(device, ReadTrace(input.device, read, context));
  }
  const Trace& with_events = device ? *device : trace;
  std::vector<DeviceMemory> devices = AllocatorMemory(with_events);
  if (!devices.empty()) sources.push_back({"allocator", &with_events, std::move(devices)});
  found.tables = MemoryTables(sources);
  return found;
}

class MemoryCommand : public Command {
 public:
  std::string_view name() const override { return "memory"; }
  std::string_view summary() const override {
    return "follow the memory of a step's tensors: timeline, peak, and what holds it";
  }
  void Declare(Options& options) override { ranks_.Declare(options, kMemoryTables, HostAndDevice); }
  Result<ExitCode> Run(const Console& console) override {
    const ReadOptions read{.strict = console.strict()};
    return ranks_.Run("etude-memory", console,
                      [&](const Trace& trace, const RankInput& input, const RunContext& context) {
                        return Inspect(trace, input, read, context);
                      });
  }

 private:
  RankInspection ranks_;
};

}  // namespace

std::unique_ptr<Command> MakeMemoryCommand() { return std::make_unique<MemoryCommand>(); }

}  // namespace etude
