#include "src/jobs/edits/device_edits.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/format_count.h"
#include "src/base/text/quantity.h"
#include "src/report/text/format.h"
#include "src/transform/runnable/fused_operators.h"
#include "src/transform/runnable/launch_cost.h"

namespace etude {
namespace {

constexpr Nanos kMostLaunchCost{1'000'000'000};

Result<DType> ParseType(std::string_view text) {
  std::vector<std::string_view> names;
  for (const DType type : kElementTypes) {
    if (Name(type) == text) return type;
    names.push_back(Name(type));
  }
  return MakeError(ErrorCode::kUsage, fmt::format("--dtype: found '{}', expected one of {}", text,
                                                  fmt::join(names, ", ")));
}

Result<std::vector<std::string>> ParseChain(std::string_view text) {
  std::vector<std::string> names;
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    names.emplace_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  bool is_right = names.size() >= 2;
  for (const std::string& name : names) is_right = is_right && !name.empty();
  if (is_right) return names;
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--fuse: found '{}', expected at least two operators, such as "
                               "aten::add,aten::relu",
                               text));
}

}  // namespace

Result<DeviceEdits> DeviceEdits::Make(const DeviceEditOptions& options) {
  DeviceEdits made;
  made.options_ = options;
  if (!options.dtype.empty()) {
    ETUDE_ASSIGN_OR_RETURN(made.type_, ParseType(options.dtype));
  }
  made.typed_ = {.edit = "--dtype " + options.dtype, .certainty = Certainty::kModelled};
  for (const std::string& text : options.fuse) {
    ETUDE_ASSIGN_OR_RETURN(std::vector<std::string> chain, ParseChain(text));
    made.chains_.push_back(std::move(chain));
    made.fused_.push_back({.edit = "--fuse " + text, .certainty = Certainty::kModelled});
  }
  made.gaps_ = {.edit = "--no-gaps", .certainty = Certainty::kModelled};
  if (!options.launch_cost.empty() && options.launch_cost != kRecordedLaunches) {
    made.launch_cost_ = ParseTime(options.launch_cost);
    if (!made.launch_cost_ || *made.launch_cost_ < Nanos{} ||
        *made.launch_cost_ > kMostLaunchCost) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--launch-cost: found '{}', expected a time from 0 to 1s, such "
                                   "as 5us, or recorded",
                                   options.launch_cost));
    }
  }
  if (!options.launch_cost.empty() && options.no_gaps) {
    return MakeError(ErrorCode::kUsage, "use either --no-gaps or --launch-cost");
  }
  made.launches_ = {.edit = "--launch-cost " + options.launch_cost,
                    .certainty = Certainty::kModelled};
  return made;
}

Status DeviceEdits::EditTypes(const Trace& trace, RunnableRank& rank) {
  if (type_ == DType::kUnknown) return {};
  const Result<TypeChange> changed = ChangeElementType(trace, type_, rank);
  if (!changed) return RefusedEdit("--dtype", changed.error());
  types_.collectives += changed->collectives;
  types_.retimed += changed->retimed;
  types_.products += changed->products;
  typed_.nodes = types_.collectives + types_.retimed;
  typed_.details = {{"communications", types_.collectives},
                    {"retimed", types_.retimed},
                    {"unchanged", types_.products}};
  typed_.text = fmt::format(
      "over all recorded ranks, {} with other bytes, {} with times by their bytes",
      FormatCount(types_.collectives, "communication"), FormatCount(types_.retimed, "operator"));
  if (types_.products != 0) {
    typed_.text += fmt::format(
        "; {} (or operators of unknown bytes) of unknown time with this type, so they keep the "
        "recorded one{}",
        FormatCount(types_.products, "matrix product"),
        rank.on_device ? "" : " (--scale matrix=FACTOR changes it)");
  }
  return {};
}

Status DeviceEdits::EditWork(const Trace& trace, RunnableRank& rank) {
  for (size_t i = 0; i < chains_.size(); ++i) {
    const Result<uint64_t> changed = FuseOperators(trace, chains_[i], rank);
    if (!changed) return RefusedEdit("--fuse", changed.error());
    fused_[i].nodes += *changed;
    fused_[i].text = fmt::format(
        "{} over all recorded ranks, each of which takes the time of its most expensive operator",
        FormatCount(fused_[i].nodes, "fused operator"));
  }
  if (!options_.no_gaps) return {};
  const RemovedGaps removed = RemoveGaps(rank);
  gaps_.nodes += removed.nodes;
  gap_time_ = gap_time_ + removed.time;
  gaps_.text = rank.on_device
                   ? "work of devices follows without gaps, as without this edit: the simulation "
                     "leaves out the time of the host"
                   : fmt::format("{} of the host between operators removed", FormatTime(gap_time_));
  return {};
}

Status DeviceEdits::EditLaunches(const Trace& trace, RunnableRank& rank) {
  if (options_.launch_cost.empty()) return {};
  const Result<uint64_t> changed =
      launch_cost_ ? AddLaunches(trace, *launch_cost_, rank) : AddRecordedLaunches(trace, rank);
  if (!changed) return RefusedEdit("--launch-cost", changed.error());
  launches_.nodes += *changed;
  if (!launch_cost_) {
    launches_.text = fmt::format("{} over all recorded ranks, with the host's recorded times",
                                 FormatCount(launches_.nodes, "launch", "launches"));
    return {};
  }
  launches_.text =
      fmt::format("{} of {} each over all recorded ranks; other time of the host is left out",
                  FormatCount(launches_.nodes, "launch", "launches"), FormatTime(*launch_cost_));
  return {};
}

std::vector<AppliedEdit> DeviceEdits::AppliedToTypes() const {
  return type_ != DType::kUnknown ? std::vector{typed_} : std::vector<AppliedEdit>();
}

std::vector<AppliedEdit> DeviceEdits::AppliedToWork() const {
  std::vector<AppliedEdit> edits = fused_;
  if (options_.no_gaps) edits.push_back(gaps_);
  return edits;
}

std::vector<AppliedEdit> DeviceEdits::AppliedToLaunches() const {
  return options_.launch_cost.empty() ? std::vector<AppliedEdit>() : std::vector{launches_};
}

}  // namespace etude
