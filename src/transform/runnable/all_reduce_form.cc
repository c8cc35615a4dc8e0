#include "src/transform/runnable/all_reduce_form.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/base/ceil_div.h"
#include "src/base/text/quantity.h"
#include "src/transform/runnable/rank_edit.h"
#include "src/transform/runnable/runnable_groups.h"

namespace etude {
namespace {

constexpr std::string_view kScattered = "reduce-scatter+all-gather";
constexpr std::string_view kHierarchical = "hierarchical:";

class AllReduceReplacer {
 public:
  AllReduceReplacer(const AllReduceForm& form, int64_t world_size, RunnableRank& rank)
      : form_(form), world_(world_size), rank_(rank), edit_(rank) {}

  Result<uint64_t> Run() {
    const RunnableGroups groups(rank_, world_);
    uint64_t replaced = 0;
    for (uint32_t i = 0; i < rank_.nodes.size(); ++i) {
      const RunnableNode& node = rank_.nodes[i];
      if (node.kind != NodeKind::kCollective || node.type != CollectiveType::kAllReduce) continue;
      const GroupMembers members = groups.MembersOf(node);
      const auto bytes = node.bytes_in ? node.bytes_in : node.bytes_out;
      if (members.size == 0 || !bytes) {
        return BadInput(fmt::format("found '{}' of unknown {}, expected a known one",
                                    rank_.names[node.name], bytes ? "ranks" : "size"));
      }
      if (members.size == 1) continue;
      ++replaced;
      if (form_.neighbours == 0) {
        Replace(i, *bytes, members.size, node.group, node.group);
      } else {
        ETUDE_RETURN_IF_ERROR(Divide(i, *bytes, members));
      }
    }
    rank_.groups.insert(rank_.groups.end(), added_.begin(), added_.end());
    ETUDE_RETURN_IF_ERROR(edit_.Finish());
    return replaced;
  }

 private:
  // Replaces an all-reduce by a reduce-scatter and an all-gather in a group of `size` ranks, with
  // an all-reduce of the shard between them if `across` is another group.
  void Replace(uint32_t number, int64_t bytes, int64_t size, uint32_t within, uint32_t across) {
    RunnableNode& gather = edit_.node(number);
    gather.duration.reset();
    gather.group = within;
    if (within != across) gather.group_size = size;
    RunnableNode scatter = gather;
    const int64_t shard = CeilDiv(bytes, size);
    scatter.type = CollectiveType::kReduceScatter;
    scatter.name = edit_.NameOf("reduce_scatter");
    scatter.bytes_in = bytes;
    scatter.bytes_out = shard;
    gather.type = CollectiveType::kAllGather;
    gather.name = edit_.NameOf("all_gather");
    gather.bytes_in = shard;
    gather.bytes_out = bytes;
    RunnableNode reduce = scatter;
    edit_.AddBefore(number, scatter);
    if (within == across) return;
    reduce.type = CollectiveType::kAllReduce;
    reduce.name = edit_.NameOf("all_reduce");
    reduce.group = across;
    reduce.group_size.reset();
    reduce.bytes_in = reduce.bytes_out = shard;
    // After the reduce-scatter, which the all-gather waits for.
    const uint32_t scattered = edit_.deps(number).front();
    edit_.RemoveDep(number, scattered);
    const uint32_t reduced = edit_.AddBefore(number, reduce);
    edit_.AddDep(reduced, scattered);
  }

  Status Divide(uint32_t number, int64_t bytes, const GroupMembers& members) {
    const int64_t each = form_.neighbours;
    if (members.size % each != 0) {
      int64_t nearest = std::min(each, members.size);
      while (members.size % nearest != 0) --nearest;
      return BadInput(fmt::format(
          "found an all-reduce of {} ranks, expected a multiple of {}; nearest possible: {}",
          members.size, each,
          nearest > 1 ? fmt::format("{}{}", kHierarchical, nearest) : std::string(kScattered)));
    }
    if (members.size == each) {
      const uint32_t group = rank_.nodes[number].group;
      Replace(number, bytes, each, group, group);
      return {};
    }
    std::vector<int64_t> all;
    if (members.ranks != nullptr) {
      all = *members.ranks;
    } else {
      all.resize(static_cast<size_t>(members.size));
      std::iota(all.begin(), all.end(), 0);
    }
    const auto own = std::ranges::find(all, *rank_.rank);
    const int64_t place = own - all.begin();
    std::vector<int64_t> within(all.begin() + place / each * each,
                                all.begin() + (place / each + 1) * each);
    std::vector<int64_t> across;
    for (int64_t i = place % each; i < members.size; i += each) {
      across.push_back(all[static_cast<size_t>(i)]);
    }
    const std::string name = rank_.nodes[number].group == RunnableNode::kNone
                                 ? ""
                                 : rank_.groups[rank_.nodes[number].group].name;
    const uint32_t inner = GroupOf(fmt::format("{} within {}", name, within.front()), within);
    const uint32_t outer = GroupOf(fmt::format("{} across {}", name, across.front()), across);
    Replace(number, bytes, each, inner, outer);
    return {};
  }

  // Returns the number of an added group.
  uint32_t GroupOf(const std::string& name, const std::vector<int64_t>& ranks) {
    const auto known = std::ranges::find(added_, name, &RunnableGroup::name);
    const auto index = static_cast<size_t>(known - added_.begin());
    if (known == added_.end()) {
      added_.push_back({.name = name, .ranks = ranks, .size = static_cast<int64_t>(ranks.size())});
    }
    return static_cast<uint32_t>(rank_.groups.size() + index);
  }

  const AllReduceForm& form_;
  int64_t world_;
  RunnableRank& rank_;
  RankEdit edit_;
  std::vector<RunnableGroup> added_;
};

}  // namespace

Result<AllReduceForm> AllReduceForm::Parse(std::string_view text) {
  if (text == kScattered) return AllReduceForm{};
  if (text.starts_with(kHierarchical)) {
    const auto neighbours = ParseWhole(text.substr(kHierarchical.size()));
    if (neighbours && *neighbours >= 2 && *neighbours <= 1 << 20) {
      return AllReduceForm{.neighbours = *neighbours};
    }
  }
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--all-reduce: found '{}', expected {}, or hierarchical:N with N "
                               "neighbouring ranks, such as hierarchical:8",
                               text, kScattered));
}

Result<uint64_t> ReplaceAllReduces(const AllReduceForm& form, int64_t world_size,
                                   std::vector<RunnableRank>& ranks) {
  uint64_t replaced = 0;
  for (RunnableRank& rank : ranks) {
    ETUDE_ASSIGN_OR_RETURN(const uint64_t count, AllReduceReplacer(form, world_size, rank).Run());
    replaced += count;
  }
  return replaced;
}

}  // namespace etude
