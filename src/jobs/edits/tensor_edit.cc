#include "src/jobs/edits/tensor_edit.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/format_count.h"
#include "src/report/text/format.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostTensorRanks = 1 << 16;

}  // namespace

Result<TensorEdit> TensorEdit::Make(std::optional<int64_t> ranks) {
  TensorEdit made;
  if (!ranks) return made;
  ETUDE_RETURN_IF_ERROR(CheckNumber("--tp", *ranks, kMostTensorRanks));
  made.ranks_ = ranks;
  made.applied_ = {.edit = fmt::format("--tp {}", *ranks),
                   .certainty = Certainty::kExact,
                   .text = "one rank has all weights"};
  return made;
}

Status TensorEdit::Divide(const std::vector<Trace>& traces, const Limits& limits) {
  if (traces.size() != 1) {
    return BadInput(fmt::format(
        "--tp: found a job of {}, expected one rank, whose weights are divided; nearest possible: "
        "--dp, which resizes data-parallel ranks",
        FormatCount(traces.size(), "rank")));
  }
  const Trace& trace = traces.front();
  if (!trace.comms().empty()) {
    const NodeId node = trace.comms().front().first;
    return BadInput(
        fmt::format("--tp: found communication ('{}', node {}), expected one rank "
                    "without any",
                    trace.name(node), trace.source_id(node)));
  }
  Result<TensorParallelStep> step = DivideAmongTensorRanks(trace, *ranks_, limits);
  if (!step) return RefusedEdit("--tp", step.error());
  step_ = *std::move(step);
  return {};
}

void TensorEdit::FollowLayers(const Trace& edited, std::span<const NodeId> origins) {
  step_.reductions = RepeatReductions(step_.reductions, edited, origins);
}

void TensorEdit::Describe() {
  const TensorParallelStep& step = step_;
  applied_.certainty = Certainty::kModelled;
  applied_.nodes = step.resized + step.reductions.size();
  Json dimensions = Json::array();
  std::vector<std::string> sizes;
  uint64_t dimension_count = 0;
  for (const auto& [size, count] : step.dimensions) {
    dimension_count += count;
    dimensions.push_back({{"size", size}, {"count", count}});
    sizes.push_back(fmt::format("{} of {}", count, size));
  }
  int64_t bytes = 0;
  std::map<std::pair<bool, int64_t>, uint64_t> counts;
  for (const TensorReduction& reduction : step.reductions) {
    bytes += reduction.bytes.count;
    ++counts[{reduction.in_backward, reduction.bytes.count}];
  }
  Json reductions = Json::array();
  for (const auto& [kind, count] : counts) {
    reductions.push_back({{"bytes", kind.second}, {"count", count}, {"backward", kind.first}});
  }
  applied_.text = fmt::format(
      "{} of {} divided in {} ({}), with {:.1f} % of the operations of matrix products; {}, {} in "
      "all; {} with other sizes, {} with times by their work",
      FormatCount(step.divided), FormatCount(step.weights, "weight"),
      FormatCount(dimension_count, "dimension"), fmt::join(sizes, ", "), step.divided_share * 100,
      FormatCount(step.reductions.size(), "all-reduce"), FormatBytes(Bytes{bytes}),
      FormatCount(step.resized, "operator"), FormatCount(step.retimed));
  if (!step.whole.empty()) {
    applied_.text += fmt::format("; each rank does in full: {}{}", step.whole.front(),
                                 step.whole.size() > 1 ? ", …" : "");
  }
  applied_.details = {{"weights", step.weights},
                      {"divided_weights", step.divided},
                      {"divided_share", step.divided_share},
                      {"dimensions", std::move(dimensions)},
                      {"reductions", std::move(reductions)},
                      {"whole", step.whole},
                      {"products", step.products},
                      {"retimed", step.retimed}};
}

Result<Trace> TensorEdit::AddCommunication(const Trace& divided, const Limits& limits) {
  Describe();
  return AddTensorReductions(divided, step_.reductions, *ranks_, limits);
}

std::vector<RunnableRank> TensorEdit::Replicate(const RunnableRank& rank, int64_t replicas) const {
  std::vector<RunnableRank> ranks;
  const int64_t tensor = *ranks_;
  for (int64_t i = 0; i < tensor * replicas; ++i) {
    RunnableRank& made = ranks.emplace_back(rank);
    made.rank = i;
    made.world_size = tensor * replicas;
    if (i > 0) {
      made.notes = RunnableNotes();
      made.host_time = Nanos{};
    }
    for (RunnableGroup& group : made.groups) {
      const bool is_tensor = group.name == kTensorGroup;
      // Groups with the same members have the same name on all of their ranks.
      group.name += fmt::format(".{}", is_tensor ? i / tensor : i % tensor);
      group.ranks.emplace();
      for (int64_t k = 0; k < (is_tensor ? tensor : replicas); ++k) {
        group.ranks->push_back(is_tensor ? i / tensor * tensor + k : i % tensor + k * tensor);
      }
      group.size = static_cast<int64_t>(group.ranks->size());
    }
  }
  return ranks;
}

}  // namespace etude
