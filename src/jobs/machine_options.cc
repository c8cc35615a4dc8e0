#include "src/jobs/machine_options.h"

#include <memory>
#include <utility>

#include "src/jobs/machine_files.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/collective_times.h"
#include "src/sim/machine/fault_text.h"
#include "src/sim/machine/link_faults.h"

namespace etude {
namespace {

// Returns kUsage if options of a network are given beside a machine file.
Status CheckTimedOnly(const MachineOptions& options) {
  const MachineOptions alone{
      .model = options.model, .machine = options.machine, .stragglers = options.stragglers};
  if (options == alone && options.model != "astra-sim-2.0") return {};
  return MakeError(ErrorCode::kUsage,
                   "--machine: only --straggler and --model etude-1 can be combined with it of the "
                   "options of a machine");
}

Result<SimMachine> RecordedMachine(const MachineOptions& options, int64_t ranks) {
  if (!options.model.empty()) {
    return MakeError(ErrorCode::kUsage, "--machine recorded cannot be combined with --model");
  }
  SimMachine machine;
  machine.dims = {{.shape = NetworkShape::kGraph, .npus = ranks}};
  machine.times = std::make_shared<const RecordedCommunications>();
  return machine;
}

Result<SimMachine> ReadNetworkOf(const MachineOptions& options, bool strict,
                                 const RunContext& context) {
  if (options.network.empty()) {
    return MakeError(ErrorCode::kUsage,
                     "missing --network or --machine, expected a file or dimensions");
  }
  return ReadMachine({.model = options.model,
                      .network = options.network,
                      .system = options.system,
                      .memory = options.memory,
                      .algorithms = options.algorithms,
                      .congestion = options.congestion,
                      .least_loaded = options.routes == "least-loaded",
                      .slow_links = options.slow_links,
                      .queues = options.queues,
                      .rendezvous = options.rendezvous,
                      .injection_scale = options.injection_scale},
                     strict, context);
}

}  // namespace

Result<SimMachine> ReadMachine(const MachineOptions& options, int64_t ranks, bool strict,
                               const RunContext& context) {
  const bool is_timed = !options.machine.empty();
  if (is_timed) ETUDE_RETURN_IF_ERROR(CheckTimedOnly(options));
  const auto read = [&]() -> Result<SimMachine> {
    if (options.machine == kRecordedMachine) return RecordedMachine(options, ranks);
    if (!is_timed) return ReadNetworkOf(options, strict, context);
    return options.model.empty() ? ReadTimedMachine(options.machine, ranks, context)
                                 : ReadFittedMachine(options.machine, ranks, context);
  };
  ETUDE_ASSIGN_OR_RETURN(SimMachine machine, read());
  if (Status checked = CheckMachine(machine); !checked) {
    const std::string& file = options.system.empty() ? options.algorithms : options.system;
    if (!file.empty()) checked.error().message = file + ": " + checked.error().message;
    return tl::unexpected<Error>(std::move(checked.error()));
  }
  for (const std::string& text : options.stragglers) {
    const Status added = AddStragglers(text, machine);
    if (!added) return MakeError(ErrorCode::kUsage, "--straggler: " + added.error().message);
  }
  for (const std::string& text : options.slow_links) {
    if (machine.graph != nullptr) break;  // which has them already
    const Status added = AddSlowLinks(text, machine);
    if (!added) return MakeError(ErrorCode::kUsage, "--slow-link: " + added.error().message);
  }
  const Status fits = CheckFaults(machine);
  if (!fits) return MakeError(ErrorCode::kUsage, fits.error().message);
  machine.system.replay_broadcasts = false;
  return machine;
}

}  // namespace etude
