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

// Clock of a part: the recorded time that belongs to it, contiguous from 0. Excludes the time of
// operators that are not in the part, with the gap before each and, for communication, the wait for
// its end.
class PartClock {
 public:
  struct Span {
    Nanos begin;
    Nanos end;
  };

  // `left_out` spans may overlap each other, and are cut where they overlap `kept`.
  PartClock(Span whole, std::vector<Span> left_out, std::vector<Span> kept);

  // Returns the time by the part's clock, within 0 and its length; monotonic.
  Nanos At(Nanos recorded) const;
  Nanos length() const { return At(whole_.end); }
  Nanos end() const { return whole_.end; }  // recorded

 private:
  Span whole_;
  std::vector<Span> left_out_;        // disjoint, ascending, inside `whole_`
  std::vector<Nanos> left_out_till_;  // by span: total time up to its end
};

// Contents of a part of a recipe. Refers to the trace and the recipe.
struct PartPlan {
  // In order of entry, followed by device work.
  std::vector<NodeId> nodes;
  // By node of the trace: the nearest ancestor in the part.
  std::vector<NodeId> parents;
  // Topmost operators to run, in order of entry.
  std::vector<NodeId> runs;
  std::unordered_map<NodeId, const Replacement*> replaced;
  // By node of the trace: communications with scaled elements, and nodes below them; empty if the
  // recipe scales none.
  std::vector<bool> scaled;
  // By operator: the scaled communications whose end the recorded operator waited for. They have
  // their own memory now, so memory no longer shows the dependency.
  std::unordered_multimap<NodeId, NodeId> waits;
  std::optional<PartClock> clock;  // nullopt: some operators to run have no times
  ComposedPart facts;
};

// Plans a part. `trace_name` is the trace's name in messages. kBadInput, with the place in the
// recipe, for a selection that matches nothing, and if nothing is left to run.
Result<PartPlan> PlanPart(const SourceTrace& source, const RecipePart& part,
                          const std::string& trace_name);

}  // namespace etude
