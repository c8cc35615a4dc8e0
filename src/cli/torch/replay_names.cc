#include "src/cli/torch/replay_names.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/nearest.h"
#include "src/run/step/recorded_step.h"
#include "src/run/waits/program_order.h"
#include "src/trace/words/operator_name.h"
#include "src/transform/operators/operator_class.h"

namespace etude {
namespace {

bool IsPartOf(std::string_view word, std::string_view text) {
  return !word.empty() && text.find(word) != std::string_view::npos;
}

// Returns suggestions for a mistyped `word` among `names` with their counts: those that contain it,
// otherwise the one with the nearest spelling (with or without overload), otherwise the most
// frequent ones.
std::string NamesLike(const std::string& word, const std::map<std::string, int64_t>& names) {
  constexpr size_t kNamed = 5;
  std::vector<std::string> all;
  for (const auto& [name, count] : names) all.push_back(name);
  std::vector<std::string> spellings = all;
  for (const std::string& name : all) spellings.emplace_back(BaseOperatorName(name));
  std::vector<std::string> like;
  std::ranges::copy_if(all, std::back_inserter(like),
                       [&](const std::string& name) { return IsPartOf(word, name); });
  if (like.empty()) {
    const std::string nearest = Nearest(word, spellings);
    std::ranges::copy_if(all, std::back_inserter(like), [&](const std::string& name) {
      return !nearest.empty() && (name == nearest || BaseOperatorName(name) == nearest);
    });
  }
  if (like.empty()) {
    like = all;
    std::ranges::stable_sort(like, std::ranges::greater{},
                             [&](const std::string& name) { return names.at(name); });
  }
  const size_t shown = std::min(like.size(), kNamed);
  return fmt::format("{}{}",
                     fmt::join(like.begin(), like.begin() + static_cast<ptrdiff_t>(shown), ", "),
                     like.size() > shown ? ", …" : "");
}

// Returns the class of operators that `word` may mean.
std::string ClassLike(const std::string& word) {
  const std::string near = Nearest(word, {kOperatorClasses.begin(), kOperatorClasses.end()});
  return near.empty() ? "" : fmt::format(", or the class {}", near);
}

}  // namespace

Status CheckNames(const Trace& trace, const ReplayOptions& options) {
  if (!options.label.empty()) {
    std::map<std::string, int64_t> labels;
    bool found = false;
    ForEachNode(trace, [&](NodeId node) {
      found |= IsPartOf(options.label, trace.name(node));
      const NodeKind kind = trace.kind(node);
      if (IsOperator(trace, node) || IsRoot(kind) || kind == NodeKind::kMetadata) return;
      ++labels[std::string(trace.name(node))];
    });
    if (!found) {
      std::string like = NamesLike(options.label, labels);
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--label: no node has '{}' in its name; labels: {}",
                                   options.label, like.empty() ? "none" : std::move(like)));
    }
  }
  const std::vector<std::string> scaled = options.scale && options.group == nullptr
                                              ? options.scale->operators()
                                              : std::vector<std::string>();
  if (options.only.empty() && options.skip.empty() && options.stand_in.empty() && scaled.empty()) {
    return {};
  }
  ETUDE_ASSIGN_OR_RETURN(const RecordedStep step, RecordedStep::Select(trace, options.label));
  std::map<std::string, int64_t> names;
  for (const NodeId node : step.top_operators()) ++names[std::string(OperatorNameOf(trace, node))];
  const auto named = [](std::string_view name, std::string_view full) {
    return MeansOperator(name, full, IsCommOperator(full));
  };
  const auto check = [&](std::string_view option, const std::string& name) -> Status {
    if (std::ranges::any_of(names, [&](const auto& row) { return named(name, row.first); })) {
      return {};
    }
    if (IsOperatorClass(name)) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("{} {}: the step has no topmost operator of this class", option, name));
    }
    for (uint32_t i = 0; i < step.nodes().size(); ++i) {
      const NodeId node = step.nodes()[i];
      const NodeId caller = step.enclosing_operator(i);
      if (!caller || !step.is_operator(i)) continue;
      if (!named(name, OperatorNameOf(trace, node))) continue;
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("{}: '{}' runs only inside other operators of the step, such as {}", option,
                      name, OperatorNameOf(trace, caller)));
    }
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("{}: the step has no topmost operator '{}'; expected one such as {}{}", option,
                    name, NamesLike(name, names), ClassLike(name)));
  };
  for (const std::string& name : options.only) ETUDE_RETURN_IF_ERROR(check("--only", name));
  for (const std::string& name : options.skip) ETUDE_RETURN_IF_ERROR(check("--skip", name));
  for (const std::string& name : options.stand_in) {
    ETUDE_RETURN_IF_ERROR(check("--stand-in", name));
  }
  for (const std::string& name : scaled) ETUDE_RETURN_IF_ERROR(check("--scale", name));
  return {};
}

}  // namespace etude
