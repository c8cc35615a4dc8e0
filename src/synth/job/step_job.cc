#include "src/synth/job/step_job.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "src/formats/chakra/chakra_attr.h"
#include "src/synth/job/work_builder.h"
#include "src/transform/astra_sim/astra_sim.h"

namespace etude {

StepJob::StepJob(Mesh mesh, std::vector<StepGroup> groups,
                 std::vector<std::vector<StepWork>> programs, AxisSet place_axes)
    : mesh_(std::move(mesh)),
      groups_(std::move(groups)),
      programs_(std::move(programs)),
      first_numbers_(groups_.size()) {
  std::vector<MeshAxis> axes;
  for (size_t axis = 0; axis < mesh_.axes().size(); ++axis) {
    if (place_axes == 0 ? axis != last_axis() : ((place_axes >> axis) & 1) == 0) continue;
    axes.push_back(mesh_.axes()[axis]);
    place_axes_.push_back(axis);
  }
  places_ = Mesh::Make(std::move(axes)).value();  // part of a mesh
  std::vector<bool> used(groups_.size());
  for (const std::vector<StepWork>& program : programs_) {
    for (const StepWork& work : program) {
      if (work.collective != CollectiveType::kUnknown) used[work.group] = true;
    }
  }
  int64_t next = 1;
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (!used[i]) continue;
    first_numbers_[i] = next;
    next += mesh_.GroupCount(groups_[i].axes);
  }
}

int64_t StepJob::PlaceOf(int64_t rank) const {
  int64_t place = 0;
  for (size_t i = 0; i < place_axes_.size(); ++i) {
    place += mesh_.Coordinate(rank, place_axes_[i]) * places_.Stride(i);
  }
  return place;
}

int64_t StepJob::PartnerPlace(int64_t place, const StepWork& work) const {
  std::vector<int64_t> offsets;
  for (const size_t axis : place_axes_) offsets.push_back(axis == AxisOf(work) ? work.partner : 0);
  return places_.Shift(place, offsets);
}

int64_t StepJob::PartnerRank(int64_t rank, const StepWork& work) const {
  std::vector<int64_t> offsets(AxisOf(work) + 1);
  offsets.back() = work.partner;
  return mesh_.Shift(rank, offsets);
}

std::vector<int64_t> StepJob::Meeting(const StepGroup& group, int64_t place) const {
  AxisSet axes = 0;
  for (size_t i = 0; i < place_axes_.size(); ++i) {
    axes |= ((group.axes >> place_axes_[i]) & 1) << i;
  }
  std::vector<int64_t> meeting = places_.GroupRanks(places_.GroupOf(place, axes), axes);
  if (group.first_and_last_only && place_axes_.back() == last_axis()) {
    const size_t last = place_axes_.size() - 1;
    std::erase_if(meeting, [&](int64_t other) {
      const int64_t at = places_.Coordinate(other, last);
      return at != 0 && at != places_.axes()[last].size - 1;
    });
  }
  return meeting;
}

RankSet StepJob::RanksAt(int64_t place) const {
  RankSet::Block block{.dims = {{}}};
  for (size_t i = 0; i < place_axes_.size(); ++i) {
    block.first += places_.Coordinate(place, i) * mesh_.Stride(place_axes_[i]);
  }
  for (size_t axis = 0; axis < mesh_.axes().size(); ++axis) {
    if (std::ranges::find(place_axes_, axis) != place_axes_.end()) continue;
    const RankSet::Dim next{.count = mesh_.axes()[axis].size, .stride = mesh_.Stride(axis)};
    RankSet::Dim& dim = block.dims.back();
    if (dim.count == 1) {
      dim = next;
    } else if (next.count > 1 && next.stride == dim.count * dim.stride) {
      dim.count *= next.count;
    } else if (next.count > 1) {
      block.dims.push_back(next);
    }
  }
  return RankSet::OfBlocks({std::move(block)}, "place").value();  // ascending: axes of a mesh
}

std::vector<int64_t> StepJob::Members(size_t group, int64_t number) const {
  std::vector<int64_t> members = mesh_.GroupRanks(number, groups_[group].axes);
  if (groups_[group].first_and_last_only) {
    std::erase_if(members, [&](int64_t rank) {
      const int64_t at = mesh_.Coordinate(rank, last_axis());
      return at != 0 && at != mesh_.axes()[last_axis()].size - 1;
    });
  }
  return members;
}

std::map<int64_t, std::vector<int64_t>> StepJob::Groups() const {
  std::map<int64_t, std::vector<int64_t>> groups;
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (!IsUsed(i)) continue;
    for (int64_t number = 0; number < mesh_.GroupCount(groups_[i].axes); ++number) {
      groups[first_numbers_[i] + number] = Members(i, number);
    }
  }
  return groups;
}

std::vector<Bytes> StepJob::MemoryOf(int64_t place) const {
  std::vector<Bytes> memory;
  Bytes live = states_.empty() ? Bytes{} : states_[static_cast<size_t>(place)].total();
  for (const StepWork& work : program(place)) {
    live = live + work.held;
    memory.push_back(live);
    live = live + Bytes{-work.freed.count};
  }
  return memory;
}

template <typename Fill>
Result<Trace> StepJob::Build(int64_t place, std::optional<int64_t> rank, Fill fill) const {
  WorkBuilder builder;
  TraceBuilder& trace = builder.trace();
  trace.info().rank = rank;
  trace.info().world_size = ranks();
  std::vector<NodeId> nodes;
  std::vector<NodeId> deps;
  const std::vector<Bytes> memory = tells_memory_ ? MemoryOf(place) : std::vector<Bytes>();
  for (const StepWork& work : program(place)) {
    NodeKind kind = NodeKind::kCompute;
    if (work.collective != CollectiveType::kUnknown) kind = NodeKind::kCollective;
    if (work.partner != 0) kind = work.sends ? NodeKind::kSend : NodeKind::kRecv;
    deps.clear();
    for (const size_t dep : work.data) deps.push_back(nodes[dep]);
    builder.BeginPart(work.part);
    const NodeId node = builder.Add(kind, work.name, deps, work.duration);
    for (const size_t dep : work.control) trace.AddDep(node, nodes[dep], DepKind::kControl);
    nodes.push_back(node);
    if (work.communicates()) {
      trace.SetComm(node, fill(work, trace));
    } else {
      // With 0, ASTRA-sim's roofline has no time, or the node is left out; with 1, the time is that
      // of its bytes.
      AddAstraAttr(trace, node, "num_ops", chakra::ValueType::kInt64,
                   static_cast<uint64_t>(std::max<int64_t>(work.flops, 1)));
      AddAstraAttr(trace, node, "tensor_size", chakra::ValueType::kUint64,
                   static_cast<uint64_t>(std::max<int64_t>(work.memory.count, 1)));
    }
    if (!memory.empty()) {
      AddAstraAttr(trace, node, chakra::kMemoryInUse, chakra::ValueType::kUint64,
                   static_cast<uint64_t>(memory[nodes.size() - 1].count));
    }
  }
  return builder.Finish();
}

Result<Trace> StepJob::TraceOf(int64_t rank) const {
  return Build(PlaceOf(rank), rank, [&](const StepWork& work, TraceBuilder& trace) -> Comm {
    if (work.partner == 0) {
      return {.type = work.collective,
              .group = trace.Intern(std::to_string(GroupNumber(work.group, rank))),
              .bytes = work.bytes};
    }
    const int64_t peer = PartnerRank(rank, work);
    return {.bytes = work.bytes,
            .src = work.sends ? rank : peer,
            .dst = work.sends ? peer : rank,
            .tag = work.tag};
  });
}

GroupKind StepJob::KindOf(size_t group) const {
  GroupKind kind;
  kind.first_name = first_numbers_[group];
  const AxisSet axes = groups_[group].axes;
  if (groups_[group].first_and_last_only && mesh_.axes()[last_axis()].size > 2) {
    for (int64_t number = 0; number < mesh_.GroupCount(axes); ++number) {
      kind.listed.push_back(RankSet::Of(Members(group, number)));
    }
  } else {
    kind.axes = axes;
  }
  return kind;
}

Result<RankClass> StepJob::ClassOf(int64_t place, const std::vector<size_t>& kinds) const {
  RankClass one;
  one.states_rank = true;
  one.ranks = RanksAt(place);
  std::vector<size_t> groups;  // of the class
  Result<Trace> program =
      Build(place, std::nullopt, [&](const StepWork& work, TraceBuilder& trace) -> Comm {
        if (work.partner != 0) return {};
        const auto found = std::ranges::find(groups, work.group);
        const auto number = static_cast<size_t>(found - groups.begin());
        if (found == groups.end()) {
          groups.push_back(work.group);
          one.groups.push_back({.kind = kinds[work.group]});
        }
        return {.group = trace.Intern(NameOfGroup(number))};
      });
  if (!program) return tl::unexpected<Error>(program.error());
  one.program = *std::move(program);
  return one;
}

// Runs the places concurrently, each until it waits for another one.
std::vector<CommEvent> StepJob::Events(const std::vector<size_t>& kinds,
                                       const Routes& routes) const {
  std::vector<CommEvent> events;
  std::vector<size_t> next(programs_.size());
  // By sender, receiver, axis and tag.
  std::map<std::tuple<int64_t, int64_t, size_t, int64_t>, size_t> sent;
  struct Gathering {
    std::vector<CommPart> parts;  // of those that have joined the next collective
    std::set<size_t> passing;     // places that still have to pass the last, complete one
  };
  std::map<std::pair<size_t, int64_t>, Gathering> gatherings;  // by group and first place
  const auto collective = [&](size_t place, const CommPart& part, const StepWork& work) {
    const std::vector<int64_t> meeting = Meeting(groups_[work.group], static_cast<int64_t>(place));
    auto& [parts, passing] = gatherings[{work.group, meeting.front()}];
    if (passing.erase(place) != 0) return true;
    if (!passing.empty()) return false;
    if (std::ranges::find(parts, place, &CommPart::rank_class) != parts.end()) return false;
    parts.push_back(part);
    if (parts.size() < meeting.size()) return false;
    for (const CommPart& other : parts) {
      if (other.rank_class != place) passing.insert(other.rank_class);
    }
    std::ranges::sort(parts, {}, &CommPart::rank_class);
    events.push_back({.type = work.collective,
                      .bytes = work.bytes,
                      .group = kinds[work.group],
                      .parts = std::exchange(parts, {})});
    return true;
  };
  // Returns false if the place has to wait.
  const auto communicate = [&](size_t index, const StepWork& work) {
    const CommPart part{.rank_class = index,
                        .node = NodeId::FromIndex(next[index]),
                        .states_self = work.partner != 0};
    if (work.partner == 0) return collective(index, part, work);
    const auto place = static_cast<int64_t>(index);
    const int64_t other = PartnerPlace(place, work);
    if (work.sends) {
      sent[{place, other, AxisOf(work), work.tag}] = events.size();
      events.push_back({.is_message = true,
                        .bytes = work.bytes,
                        .tag = work.tag,
                        .route = routes.at({AxisOf(work), work.partner}),
                        .parts = {part}});
      return true;
    }
    const auto message = sent.find({other, place, AxisOf(work), work.tag});
    if (message == sent.end()) return false;
    events[message->second].parts.push_back(part);
    if (message->second + 1 < events.size()) {
      events[message->second].received_after = events.size() - 1;
    }
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t place = 0; place < programs_.size(); ++place) {
      const std::vector<StepWork>& works = programs_[place];
      for (; next[place] < works.size(); ++next[place]) {
        const StepWork& work = works[next[place]];
        if (work.communicates() && !communicate(place, work)) break;
        moved = true;
      }
    }
  }
  return events;
}

Result<Job> StepJob::AsJob() const {
  Job job;
  job.mesh = mesh_;
  std::vector<size_t> kinds(groups_.size(), CommEvent::kNone);
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (!IsUsed(i)) continue;
    kinds[i] = job.group_kinds.size();
    job.group_kinds.push_back(KindOf(i));
  }
  std::set<std::pair<size_t, int64_t>, std::greater<>> partners;  // of senders
  for (const std::vector<StepWork>& program : programs_) {
    for (const StepWork& work : program) {
      if (work.partner != 0 && work.sends) partners.emplace(AxisOf(work), work.partner);
    }
  }
  Routes routes;
  for (const auto& [axis, partner] : partners) {
    routes[{axis, partner}] = job.routes.size();
    std::vector<int64_t>& shift = job.routes.emplace_back().shift;
    shift.resize(mesh_.axes().size());
    shift[axis] = partner;
  }
  for (int64_t place = 0; place < places_.size(); ++place) {
    ETUDE_ASSIGN_OR_RETURN(job.classes.emplace_back(), ClassOf(place, kinds));
  }
  job.events = Events(kinds, routes);
  ETUDE_RETURN_IF_ERROR(CheckJob(job));
  return job;
}

}  // namespace etude
