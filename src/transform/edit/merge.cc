#include "src/transform/edit/merge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/formats/read_trace.h"
#include "src/trace/carried_stats.h"
#include "src/trace/program_parts.h"
#include "src/trace/trace_builder.h"
#include "src/trace/trace_copy.h"

namespace etude {
namespace {

// Returns true for facts that a merged trace represents differently.
bool IsOwnFact(std::string_view key) {
  return key == "distributedInfo" || key.ends_with("etude_met") ||  // carried_stats.h
         key == kProgramPartsKey;                                   // ids differ
}

class Merger {
 public:
  Merger(std::span<const MergeInput> inputs, const Limits& limits)
      : inputs_(inputs), builder_(limits) {}

  Result<MergeResult> Run() {
    ETUDE_RETURN_IF_ERROR(Check());
    FindStrides();
    MergeInfo();
    for (const MergeInput& input : inputs_) Add(input);
    if (!builder_.info().traits.states_order || builder_.stats()[Stat::kRenumberedId] != 0) {
      CarryStats(builder_);
    }
    ETUDE_ASSIGN_OR_RETURN(result_.trace, builder_.Finish());
    return std::move(result_);
  }

 private:
  const TraceInfo& info_of(size_t input) const { return inputs_[input].trace->info(); }

  Status Check() const {
    for (const MergeInput& input : inputs_) {
      const TraceInfo& info = input.trace->info();
      if (info.traits.is_profile) {
        return BadInput(input.label +
                        ": found only a profile, expected a host, linked or Chakra trace; `etude "
                        "link` joins it with its host trace, `etude timeline` shows several, " +
                        std::string(kRecordHint));
      }
      if (info.traits.exclusive_durations != info_of(0).traits.exclusive_durations) {
        return BadInput(input.label +
                        ": found durations that exclude children, but other traces include them; "
                        "convert all to one format with `etude convert`");
      }
    }
    return {};
  }

  // Per kind, an exclusive upper bound of the numbers of one input.
  struct Strides {
    uint64_t tid = 1;
    int64_t correlation = 1;
  };

  void FindStrides() {
    for (const MergeInput& input : inputs_) {
      const Trace& trace = *input.trace;
      ForEachNode(trace, [&](NodeId node) {
        for (const auto tid : {trace.tid(node), trace.fw_tid(node)}) {
          if (tid && IsCountedUp(*tid)) strides_.tid = std::max(strides_.tid, *tid + 1);
        }
        const auto correlation = trace.correlation(node);
        if (correlation && IsCountedUp(*correlation)) {
          strides_.correlation = std::max(strides_.correlation, *correlation + 1);
        }
      });
    }
  }

  void MergeInfo() {
    TraceInfo& info = builder_.info();
    info.SetFormat(info_of(0).format);
    info.schema = info_of(0).schema;
    info.time = info_of(0).time;
    info.world_size = info_of(0).world_size;
    info.traits.exclusive_durations = info_of(0).traits.exclusive_durations;
    for (size_t i = 1; i < inputs_.size(); ++i) {
      if (info_of(i).format != info.format) info.SetFormat(TraceFormat::kLinked);
      if (info_of(i).time != info.time) info.time.clear();
      if (info_of(i).world_size != info.world_size) info.world_size.reset();
    }
  }

  bool AllSay(const Trace& trace, const Extra& extra) const {
    return std::ranges::all_of(inputs_, [&](const MergeInput& input) {
      const Trace& other = *input.trace;
      return std::ranges::any_of(other.info().extras, [&](const Extra& said) {
        return said.form == extra.form && other.text(said.key) == trace.text(extra.key) &&
               other.text(said.text) == trace.text(extra.text);
      });
    });
  }

  void AddFactsOf(const MergeInput& input, TraceCopy& copy) {
    const Trace& trace = *input.trace;
    for (const Extra& extra : trace.info().extras) {
      const std::string_view key = trace.text(extra.key);
      if (IsOwnFact(key)) continue;
      const bool shared = AllSay(trace, extra);
      if (shared && &input != &inputs_.front()) continue;
      Extra kept = copy.MakeExtra(extra);
      if (!shared && extra.form == Extra::Form::kJson) {
        kept.key = builder_.Intern(input.label + "/" + std::string(key));
      } else if (!shared && &input != &inputs_.front()) {
        continue;  // protobuf fields have no names to distinguish them
      }
      builder_.info().extras.push_back(kept);
    }
  }

  // Merges groups with equal names and members. Returns the names of this input's groups.
  std::map<StringId, StringId> AddGroups(const MergeInput& input, TraceCopy& copy) {
    const Trace& trace = *input.trace;
    std::map<StringId, StringId> names;
    for (const ProcessGroup& group : trace.process_groups()) {
      ProcessGroup added = copy.MakeGroup(group);
      const auto ranks = trace.ints(group.ranks);
      const std::vector<int64_t> members(ranks.begin(), ranks.end());
      const auto [at, is_new] = members_.emplace(added.name, members);
      if (!is_new && !members.empty() && !at->second.empty() && at->second != members) {
        const auto [renamed, is_first] = renamed_.try_emplace({added.name, members});
        if (is_first) {
          renamed->second =
              builder_.Intern(std::string(trace.text(group.name)) + " of " + input.label);
          ++result_.renamed_groups;
        }
        added.name = renamed->second;
      } else if (at->second.empty()) {
        at->second = members;
      }
      names[group.name] = added.name;
      builder_.AddProcessGroup(added);
    }
    return names;
  }

  LaneId MoveLane(const MergeInput& input, LaneId id) {
    Lane lane = id ? input.trace->lane(id) : Lane();
    std::string process = input.label;
    if (lane.process) process += "/" + std::string(input.trace->text(lane.process));
    lane.process = builder_.Intern(process);
    if (lane.thread) lane.thread = builder_.Intern(input.trace->text(lane.thread));
    return builder_.InternLane(lane);
  }

  void Add(const MergeInput& input) {
    const Trace& trace = *input.trace;
    const auto number = static_cast<uint64_t>(&input - inputs_.data());
    const uint64_t base = builder_.node_count();
    TraceCopy copy(trace, builder_);
    AddFactsOf(input, copy);
    const std::map<StringId, StringId> groups = AddGroups(input, copy);
    copy.AddStats();
    copy.CountRenumbered();
    std::vector<LaneId> lanes(trace.lane_count() + 1);
    const auto moved_tid = [&](std::optional<uint64_t> tid) {
      if (tid && *tid < strides_.tid) *tid += number * strides_.tid;
      return tid;
    };
    ForEachNode(trace, [&](NodeId node) {
      NodeRow row = copy.Row(node);
      row.source_id = base + node.value();
      if (const NodeId parent = trace.parent(node)) row.parent = base + parent.value();
      const LaneId lane = trace.lane_id(node);
      LaneId& moved = lanes[lane ? lane.index() : lanes.size() - 1];
      if (!moved) moved = MoveLane(input, lane);
      row.lane = moved;
      if (row.start) row.start = *row.start - input.offset;
      row.tid = moved_tid(row.tid);
      if (row.fw_tid != 0) row.fw_tid = moved_tid(row.fw_tid);  // 0: none
      // Values <= 0 link nothing: LaunchCorrelation.
      if (row.correlation && *row.correlation > 0 && *row.correlation < strides_.correlation) {
        *row.correlation += static_cast<int64_t>(number) * strides_.correlation;
      }
      if (row.fw_parent) {
        if (const NodeId forward = trace.Find(*row.fw_parent)) {
          row.fw_parent = base + forward.value();
        }
      }
      const NodeId added = builder_.AddNode(row);
      copy.AddFacts(node, added);
      if (const Comm* comm = trace.comm(node)) {
        const auto group = groups.find(comm->group);
        if (group != groups.end()) {
          Comm renamed = copy.MakeComm(*comm);
          renamed.group = group->second;
          builder_.SetComm(added, renamed);
        }
      }
    });
    ForEachNode(trace, [&](NodeId node) {
      const auto deps = trace.deps(node);
      const auto kinds = trace.dep_kinds(node);
      const NodeId from = NodeId::FromIndex(base + node.index());
      for (size_t i = 0; i < deps.size(); ++i) {
        builder_.AddDep(from, NodeId::FromIndex(base + deps[i].index()), kinds[i]);
      }
    });
    result_.dangling += trace.dangling().size();
  }

  std::span<const MergeInput> inputs_;
  TraceBuilder builder_;
  MergeResult result_;
  Strides strides_;
  std::map<StringId, std::vector<int64_t>> members_;  // by name of the group
  // Groups whose name was taken: new name by old name and members.
  std::map<std::pair<StringId, std::vector<int64_t>>, StringId> renamed_;
};

}  // namespace

Result<MergeResult> Merge(std::span<const MergeInput> inputs, const Limits& limits) {
  return Merger(inputs, limits).Run();
}

}  // namespace etude
