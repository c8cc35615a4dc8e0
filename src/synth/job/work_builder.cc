#include "src/synth/job/work_builder.h"

namespace etude {

WorkBuilder::WorkBuilder() {
  builder_.info().SetFormat(TraceFormat::kChakra);
  builder_.info().traits.exclusive_durations = true;
}

NodeId WorkBuilder::Add(NodeKind kind, std::string_view name, std::span<const NodeId> deps,
                        std::optional<Nanos> duration) {
  const uint64_t id = builder_.node_count();
  if (part_ && !spans_.empty() && spans_.back().part == *part_ && spans_.back().last + 1 == id) {
    spans_.back().last = id;
  } else if (part_) {
    spans_.push_back({.part = *part_, .first = id, .last = id});
  }
  const NodeId node = builder_.AddNode({.source_id = id,
                                        .kind = kind,
                                        .place = Place::kDevice,
                                        .name = builder_.Intern(name),
                                        .duration = duration});
  for (const NodeId dep : deps) builder_.AddDep(node, dep, DepKind::kData);
  return node;
}

Result<Trace> WorkBuilder::Finish() {
  if (builder_.node_count() == 0) Add(NodeKind::kCompute, "nothing", {}, Nanos{});
  StateParts(spans_, builder_);
  return builder_.Finish();
}

}  // namespace etude
