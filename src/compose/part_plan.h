#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/compose/composition.h"
#include "src/compose/recipe.h"
#include "src/compose/source_trace.h"

namespace etude {

// The clock of a part: what of the recorded time belongs to it, in one piece from 0. Time of
// operators that are not in the part is left out, with the gap in front of each and, of
// communication, the wait for its end.
class PartClock {
 public:
  struct Span {
    Nanos begin;
    Nanos end;
  };

  // `left_out` may overlap, but leaves `kept` alone.
  PartClock(Span whole, std::vector<Span> left_out, std::vector<Span> kept);

  // When that is by the part's clock: never before 0 or behind the end, and never earlier than what
  // was before.
  Nanos At(Nanos recorded) const;
  Nanos length() const { return At(whole_.end); }
  Nanos end() const { return whole_.end; }  // recorded

 private:
  Span whole_;
  std::vector<Span> left_out_;        // disjoint, ascending, inside `whole_`
  std::vector<Nanos> left_out_till_;  // by span: the time of all of them up to its end
};

// What of a trace a part of a recipe consists of. Refers to the trace and the recipe.
struct PartPlan {
  // In order of entry, and behind them the work of devices.
  std::vector<NodeId> nodes;
  // By node of the trace: the nearest node above that is in the part, too.
  std::vector<NodeId> parents;
  // Operators that run, none inside another, in order of entry.
  std::vector<NodeId> runs;
  std::unordered_map<NodeId, const Replacement*> replaced;
  // By node of the trace: communication, and what is below it, that moves another number of
  // elements; empty if the recipe does not say so.
  std::vector<bool> scaled;
  // By operator: scaled communication whose end the recorded one waited for. That has memory of its
  // own now, so that memory no longer shows the dependency.
  std::unordered_multimap<NodeId, NodeId> waits;
  std::optional<PartClock> clock;  // nullopt: not all that runs has times
  ComposedPart facts;
};

// `trace_name` is what messages call the trace. kBadInput, with the place in the recipe, where a
// selection means nothing, and if nothing is left that runs.
Result<PartPlan> PlanPart(const SourceTrace& source, const RecipePart& part,
                          const std::string& trace_name);

}  // namespace etude
