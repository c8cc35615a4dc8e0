#include "src/synth/pattern/astra_edges.h"

#include <algorithm>
#include <vector>

#include "src/transform/astra_sim/astra_sim.h"

namespace etude {
namespace {

// Returns the first computation of a program, if nothing precedes it: ASTRA-sim begins with it.
const StepWork* FirstComputation(const std::vector<StepWork>& program) {
  const auto first =
      std::ranges::find_if(program, [](const StepWork& work) { return !work.communicates(); });
  if (first == program.end() || !first->data.empty() || !first->control.empty()) return nullptr;
  return &*first;
}

}  // namespace

AstraEdges FindAstraEdges(const StepJob& job) {
  const int64_t places = job.places();
  const auto ranks = static_cast<uint64_t>(job.ranks() / places);  // per place
  AstraEdges edges;
  for (int64_t place = 0; place < places; ++place) {
    const std::vector<StepWork>& program = job.program(place);
    for (const StepWork& work : program) {
      const bool gathers = work.collective == CollectiveType::kAllGather;
      if (gathers && work.bytes.count < kAstraLeastGather) edges.small_gathers += ranks;
    }
    const StepWork* first = FirstComputation(program);
    if (first != nullptr && first->memory.count < kAstraLeastFirst) edges.small_firsts += ranks;
  }
  return edges;
}

AstraEdges FindAstraEdges(const Trace& trace, int64_t ranks) {
  AstraEdges edges;
  ForEachNode(trace, [&](NodeId node) {
    const Comm* comm = trace.comm(node);
    if (comm == nullptr || trace.kind(node) != NodeKind::kCollective) return;
    if (ranks == 1) {
      ++edges.alone;
    } else if (comm->type == CollectiveType::kAllGather && comm->bytes &&
               comm->bytes->count < kAstraLeastGather) {
      edges.small_gathers += static_cast<uint64_t>(ranks);
    }
  });
  return edges;
}

}  // namespace etude
