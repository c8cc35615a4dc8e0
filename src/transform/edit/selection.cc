#include "src/transform/edit/selection.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/run/calls/launch.h"
#include "src/run/waits/program_order.h"
#include "src/trace/program_parts.h"
#include "src/trace/words/module_name.h"
#include "src/trace/words/operator_name.h"
#include "src/trace/words/phase.h"
#include "src/transform/operators/label_phases.h"

namespace etude {
namespace {

tl::unexpected<Error> Usage(std::string message) {
  return MakeError(ErrorCode::kUsage, std::move(message));
}

// Returns true if `text` matches `pattern`, in which "*" stands for any text.
bool Matches(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;  // the last one seen, and the end of its match
  size_t taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Compares texts with numbers at the end by number: "ProfilerStep#2" is before "ProfilerStep#10".
struct ByNumberAtEnd {
  bool operator()(std::string_view a, std::string_view b) const { return KeyOf(a) < KeyOf(b); }

  using Key = std::tuple<std::string_view, size_t, std::string_view, std::string_view>;
  static Key KeyOf(std::string_view text) {
    const size_t digits = text.find_last_not_of("0123456789") + 1;
    const size_t number = std::min(text.find_first_not_of('0', digits), text.size());
    return {text.substr(0, digits), text.size() - number, text.substr(number), text};
  }
};

// Names that a filter may refer to.
using Names = std::set<std::string, ByNumberAtEnd>;

// Returns the error for an unknown word. `filter` is its kind and the word: "--op aten::mm".
tl::unexpected<Error> Unknown(const std::string& filter, std::string_view what,
                              const std::string& word, const Names& names) {
  constexpr size_t kShown = 5;
  const std::vector<std::string> all(names.begin(), names.end());
  std::string message = fmt::format("{}: the trace has no {}", filter, what);
  // A number is never suggested for another one.
  const std::string hint = ParseWhole(word) ? "" : DidYouMean(word, all);
  if (!hint.empty()) {
    message += hint;
  } else if (!all.empty()) {
    const size_t shown = std::min(all.size(), kShown);
    message += fmt::format(
        "; it has {}{}", fmt::join(all.begin(), all.begin() + static_cast<ptrdiff_t>(shown), ", "),
        shown < all.size() ? ", …" : "");
  }
  return Usage(std::move(message));
}

class Selector {
 public:
  Selector(const Trace& trace, const Selection& selection)
      : trace_(trace),
        selection_(selection),
        launchers_(FindLaunchers(trace)),
        order_(TopDown(trace)) {}

  Result<SelectedNodes> Run() {
    ETUDE_ASSIGN_OR_RETURN(spans_, StatedParts(trace_));
    span_of_ = SpansOfNodes(trace_, spans_);
    result_.nodes.assign(trace_.node_count(), true);
    if (!selection_.labels.empty()) ETUDE_RETURN_IF_ERROR(SelectLabels());
    if (!selection_.operators.empty()) ETUDE_RETURN_IF_ERROR(SelectOperators());
    if (!selection_.modules.empty()) ETUDE_RETURN_IF_ERROR(SelectModules());
    if (!selection_.steps.empty()) ETUDE_RETURN_IF_ERROR(SelectSteps());
    if (!selection_.threads.empty()) ETUDE_RETURN_IF_ERROR(SelectThreads());
    if (!selection_.streams.empty()) ETUDE_RETURN_IF_ERROR(SelectStreams());
    if (!selection_.times.empty()) ETUDE_RETURN_IF_ERROR(SelectTimes());
    if (!selection_.phases.empty()) ETUDE_RETURN_IF_ERROR(SelectPhases());
    if (!selection_.micro_batches.empty()) ETUDE_RETURN_IF_ERROR(SelectMicroBatches());
    if (selection_.communication) ETUDE_RETURN_IF_ERROR(SelectCommunication());
    result_.count = static_cast<uint64_t>(std::ranges::count(result_.nodes, true));
    if (result_.count == 0 && !selection_.empty()) {
      return Usage("no node matches all selectors");
    }
    return std::move(result_);
  }

 private:
  bool on_host(NodeId node) const { return trace_.place(node) != Place::kDevice; }

  // Return a kind of filter as in messages, "--op", and the same with one of its words.
  std::string KindName(std::string_view kind) const {
    return fmt::format("{}{}", selection_.sigil, kind);
  }
  std::string FilterName(std::string_view kind, std::string_view word) const {
    return fmt::format("{}{} {}", selection_.sigil, kind, word);
  }

  void Intersect(const std::vector<bool>& nodes) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes[i]) result_.nodes[i] = false;
    }
  }

  // Adds device work launched by `nodes`.
  void AddLaunched(std::vector<bool>& nodes) const {
    for (const NodeId node : order_) {
      const NodeId launcher = launchers_[node.index()];
      if (launcher && nodes[launcher.index()]) nodes[node.index()] = true;
    }
  }
  // Adds nodes below `nodes`, and work launched there.
  void AddBelow(std::vector<bool>& nodes) const {
    const auto below = [&] {
      for (const NodeId node : order_) {
        const NodeId parent = trace_.parent(node);
        if (parent && nodes[parent.index()]) nodes[node.index()] = true;
      }
    };
    below();
    AddLaunched(nodes);
    below();
  }

  // A kind of filter whose words match single nodes.
  struct Filter {
    std::string_view kind;
    std::string_view what;  // name of the missing thing, if a word matches no node
    std::function<bool(std::string_view, NodeId)> holds;
    std::function<Names()> names;  // known names, for suggestions
  };
  Result<std::vector<bool>> NodesOf(const std::vector<std::string>& words,
                                    const Filter& filter) const {
    std::vector<bool> nodes(trace_.node_count());
    for (const std::string& word : words) {
      bool any = false;
      ForEachNode(trace_, [&](NodeId node) {
        if (!filter.holds(word, node)) return;
        nodes[node.index()] = true;
        any = true;
      });
      if (!any) {
        return Unknown(FilterName(filter.kind, word), filter.what, word, filter.names());
      }
    }
    return nodes;
  }

  Names NamesOf(bool labels) const {
    Names names;
    ForEachNode(trace_, [&](NodeId node) {
      if ((trace_.kind(node) == NodeKind::kLabel) == labels && !IsRoot(trace_.kind(node))) {
        names.emplace(trace_.name(node));
      }
    });
    return names;
  }

  Status SelectLabels() {
    const auto holds = [&](std::string_view word, NodeId node) {
      return !word.empty() && trace_.name(node).find(word) != std::string_view::npos;
    };
    ETUDE_ASSIGN_OR_RETURN(std::vector<bool> nodes,
                           NodesOf(selection_.labels, {"label", "node with this in its name", holds,
                                                       [&] { return NamesOf(/*labels=*/true); }}));
    AddBelow(nodes);
    Intersect(nodes);
    return {};
  }

  Status SelectOperators() {
    const auto holds = [&](std::string_view word, NodeId node) {
      return IsNamed(trace_, node, word);
    };
    ETUDE_ASSIGN_OR_RETURN(std::vector<bool> nodes,
                           NodesOf(selection_.operators, {"op", "node of this name", holds,
                                                          [&] { return NamesOf(false); }}));
    AddBelow(nodes);
    Intersect(nodes);
    return {};
  }

  // Returns true if the word names the module: "Linear" and "Linear_0" for "Linear_0"; "Net",
  // "Net.layers", "layers.0" and its class for "Net.layers.0", or a part of it.
  static bool IsModule(std::string_view word, const ModuleStep& module) {
    if (word.empty() || module.name.empty()) return false;
    if (word == module.type || IsPathOrPart(word, module.name)) return true;
    const size_t dot = module.name.find('.');
    if (dot != std::string_view::npos && IsPathOrPart(word, module.name.substr(dot + 1))) {
      return true;
    }
    const size_t end = module.name.rfind('_');
    return end != std::string_view::npos && word == module.name.substr(0, end) &&
           ParseWhole(module.name.substr(end + 1));
  }
  static bool IsPathOrPart(std::string_view word, std::string_view path) {
    return path.starts_with(word) && (path.size() == word.size() || path[word.size()] == '.');
  }

  Status SelectModules() {
    std::vector<bool> nodes(trace_.node_count());
    Names names;
    std::vector<bool> found(selection_.modules.size());
    ForEachNode(trace_, [&](NodeId node) {
      const ModuleStep module = ModuleOfLabel(trace_.name(node));
      const std::vector<ModuleStep> path = ModulePath(trace_, node);
      if (!module.name.empty()) names.emplace(module.name);
      for (const ModuleStep& step : path) names.emplace(step.name);
      for (size_t i = 0; i < found.size(); ++i) {
        const std::string& word = selection_.modules[i];
        const bool holds =
            IsModule(word, module) || std::ranges::any_of(path, [&](const ModuleStep& step) {
              return step.name == word || step.type == word;
            });
        if (!holds) continue;
        nodes[node.index()] = true;
        found[i] = true;
      }
    });
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i]) continue;
      if (names.empty()) {
        return Usage(fmt::format(
            "{}: the trace has no module names; record them with the native recorder, or with the "
            "profiler's with_stack or with_modules; {} selects by label names",
            KindName("module"), KindName("label")));
      }
      const std::string& word = selection_.modules[i];
      return Unknown(FilterName("module", word), "module of this name", word, names);
    }
    AddBelow(nodes);
    Intersect(nodes);
    return {};
  }

  // A step: from its mark to the mark's end by the clock, or to the next mark by ids.
  struct Step {
    NodeId mark;
    uint64_t first_id = 0;
    uint64_t end_id = UINT64_MAX;  // one past the last
    std::optional<Nanos> begin;
    Nanos end;
  };

  std::vector<Step> FindSteps() const {
    std::vector<Step> steps;
    ForEachNode(trace_, [&](NodeId node) {
      if (!on_host(node) || !IsStepMark(trace_.name(node))) return;
      Step step{.mark = node, .first_id = trace_.source_id(node)};
      const auto duration = trace_.duration(node);
      if (duration && duration->count > 0) step.begin = trace_.start(node);
      if (step.begin) step.end = *step.begin + *duration;
      steps.push_back(step);
    });
    std::ranges::stable_sort(steps, {}, &Step::first_id);
    for (size_t i = 0; i + 1 < steps.size(); ++i) steps[i].end_id = steps[i + 1].first_id;
    return steps;
  }

  // Disjoint ranges [first, second), ascending.
  template <typename T>
  using Ranges = std::vector<std::pair<T, T>>;

  template <typename T>
  static void Join(Ranges<T>& ranges) {
    std::ranges::sort(ranges);
    size_t kept = 0;
    for (const auto& range : ranges) {
      if (kept != 0 && range.first <= ranges[kept - 1].second) {
        ranges[kept - 1].second = std::max(ranges[kept - 1].second, range.second);
      } else {
        ranges[kept++] = range;
      }
    }
    ranges.resize(kept);
  }
  template <typename T>
  static bool IsIn(const Ranges<T>& ranges, T value) {
    const auto after = std::ranges::upper_bound(ranges, value, {}, &std::pair<T, T>::first);
    return after != ranges.begin() && value < std::prev(after)->second;
  }

  // Numbers [first, second) of "FROM..TO"; nullopt for other text.
  using StepRange = std::optional<std::pair<int64_t, int64_t>>;
  Result<StepRange> ParseSteps(const std::string& text) const {
    const size_t dots = text.find("..");
    if (dots == std::string::npos) return StepRange();
    const std::string from = text.substr(0, dots);
    const std::string to = text.substr(dots + 2);
    const auto first = from.empty() ? INT64_MIN : ParseWhole(from);
    const auto second = to.empty() ? INT64_MAX : ParseWhole(to);
    if (!first || !second || *first >= *second) {
      return Usage(fmt::format("{}: found '{}', expected a number or FROM..TO, as in 3..6{}",
                               KindName("step"), text,
                               first && second ? ", with TO after FROM" : ""));
    }
    return StepRange({*first, *second});
  }

  // Selects, by the stated parts of the trace, the nodes in spans for which `holds` is true.
  template <typename Holds>
  void SelectSpans(Holds holds) {
    std::vector<bool> nodes(trace_.node_count());
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i] = span_of_[i] != nullptr && holds(span_of_[i]->part);
    }
    AddLaunched(nodes);
    Intersect(nodes);
  }

  Status SelectStatedSteps() {
    Names names;
    for (const ProgramSpan& span : spans_) names.insert(std::to_string(span.part.step));
    std::vector<std::pair<int64_t, int64_t>> wanted;
    for (const std::string& word : selection_.steps) {
      ETUDE_ASSIGN_OR_RETURN(StepRange range, ParseSteps(word));
      const auto number = ParseWhole(word);
      if (number && *number < INT64_MAX) range = {*number, *number + 1};
      if (!range || std::ranges::none_of(spans_, [&](const ProgramSpan& span) {
            return range->first <= span.part.step && span.part.step < range->second;
          })) {
        return Unknown(FilterName("step", word), "such step", word, names);
      }
      wanted.push_back(*range);
    }
    SelectSpans([&](const ProgramPart& part) {
      return std::ranges::any_of(wanted, [&](const auto& range) {
        return range.first <= part.step && part.step < range.second;
      });
    });
    return {};
  }

  Status SelectSteps() {
    if (!spans_.empty()) return SelectStatedSteps();
    const std::vector<Step> steps = FindSteps();
    Names names;
    for (const Step& step : steps) names.emplace(trace_.name(step.mark));
    std::vector<Step> chosen;
    for (const std::string& word : selection_.steps) {
      ETUDE_ASSIGN_OR_RETURN(const auto range, ParseSteps(word));
      const std::string name = ParseWhole(word) ? std::string(kStepMark) + word : word;
      const auto before = chosen.size();
      std::ranges::copy_if(steps, std::back_inserter(chosen), [&](const Step& step) {
        const std::string_view mark = trace_.name(step.mark);
        if (!range) return mark == name;
        const auto number = ParseWhole(mark.substr(kStepMark.size()));
        return number && range->first <= *number && *number < range->second;
      });
      if (chosen.size() == before) {
        return Unknown(FilterName("step", word), "such step", word, names);
      }
    }
    Ranges<Nanos> times;       // of steps with times
    Ranges<uint64_t> ids;      // of all steps, for nodes without times
    Ranges<uint64_t> untimed;  // of steps without times
    std::vector<bool> nodes(trace_.node_count());
    for (const Step& step : chosen) {
      nodes[step.mark.index()] = true;
      ids.emplace_back(step.first_id, step.end_id);
      if (step.begin) {
        times.emplace_back(*step.begin, step.end);
      } else {
        untimed.emplace_back(step.first_id, step.end_id);
      }
    }
    Join(times);
    Join(ids);
    Join(untimed);
    ForEachNode(trace_, [&](NodeId node) {
      // Device work belongs to the step that launched it.
      if (launchers_[node.index()] || IsRoot(trace_.kind(node))) return;
      const auto start = trace_.start(node);
      bool inside = start && IsIn(times, *start);
      if (on_host(node)) inside |= IsIn(start ? untimed : ids, trace_.source_id(node));
      if (inside) nodes[node.index()] = true;
    });
    AddLaunched(nodes);
    Intersect(nodes);
    return {};
  }

  bool IsOnThread(std::string_view word, NodeId node) const {
    if (!on_host(node)) return false;
    if (const auto tid = trace_.tid(node); tid && std::to_string(*tid) == word) return true;
    const LaneId lane = trace_.lane_id(node);
    return lane && trace_.lane(lane).thread && trace_.text(trace_.lane(lane).thread) == word;
  }

  Status SelectThreads() {
    const auto holds = [&](std::string_view word, NodeId node) { return IsOnThread(word, node); };
    const auto threads = [&] {
      Names names;
      ForEachNode(trace_, [&](NodeId node) {
        if (!on_host(node)) return;
        if (const auto tid = trace_.tid(node)) names.insert(std::to_string(*tid));
        const LaneId lane = trace_.lane_id(node);
        if (lane && trace_.lane(lane).thread) names.emplace(trace_.text(trace_.lane(lane).thread));
      });
      return names;
    };
    ETUDE_ASSIGN_OR_RETURN(std::vector<bool> nodes,
                           NodesOf(selection_.threads, {"thread", "such thread", holds, threads}));
    AddLaunched(nodes);
    Intersect(nodes);
    return {};
  }

  bool IsOnStream(std::string_view word, NodeId node) const {
    const LaneId lane_id = trace_.lane_id(node);
    if (on_host(node) || !lane_id) return false;
    const Lane& lane = trace_.lane(lane_id);
    const size_t colon = word.find(':');
    const auto stream = ParseWhole(colon == std::string_view::npos ? word : word.substr(colon + 1));
    if (!stream || lane.stream < 0 || *stream != lane.stream) return false;
    return colon == std::string_view::npos || ParseWhole(word.substr(0, colon)) == lane.device;
  }

  Status SelectStreams() {
    const auto holds = [&](std::string_view word, NodeId node) { return IsOnStream(word, node); };
    const auto streams = [&] {
      Names names;
      ForEachNode(trace_, [&](NodeId node) {
        const LaneId lane = trace_.lane_id(node);
        if (on_host(node) || !lane || trace_.lane(lane).stream < 0) return;
        const Lane& on = trace_.lane(lane);
        names.insert(on.device < 0 ? std::to_string(on.stream)
                                   : fmt::format("{}:{}", on.device, on.stream));
      });
      return names;
    };
    ETUDE_ASSIGN_OR_RETURN(const std::vector<bool> nodes,
                           NodesOf(selection_.streams, {"stream", "such stream", holds, streams}));
    Intersect(nodes);
    return {};
  }

  struct Range {
    Nanos begin{INT64_MIN};
    Nanos end{INT64_MAX};
  };

  Result<Range> ParseRange(const std::string& text, Nanos origin) const {
    const size_t dots = text.find("..");
    const auto fails = [&](std::string_view remark = "") {
      return Usage(fmt::format("{}: found '{}', expected FROM..TO with units, as in 1.5ms..20ms{}",
                               KindName("time"), text, remark));
    };
    if (dots == std::string::npos) return fails();
    const std::string from = text.substr(0, dots);
    const std::string to = text.substr(dots + 2);
    Range range;
    if (!from.empty()) {
      const auto time = ParseTime(from);
      if (!time) return fails();
      range.begin = origin + *time;
    }
    if (!to.empty()) {
      const auto time = ParseTime(to);
      if (!time) return fails();
      range.end = origin + *time;
    }
    if (range.end <= range.begin) return fails(", with TO after FROM");
    return range;
  }

  Status SelectTimes() {
    std::optional<Nanos> origin;
    ForEachNode(trace_, [&](NodeId node) {
      const auto start = trace_.start(node);
      if (start && (!origin || *start < *origin)) origin = start;
    });
    std::vector<Range> ranges;
    for (const std::string& text : selection_.times) {
      ETUDE_ASSIGN_OR_RETURN(const Range range, ParseRange(text, origin.value_or(Nanos{})));
      ranges.push_back(range);
    }
    if (!origin) {
      return Usage(KindName("time") +
                   ": the trace has no times; `etude link` joins it with a device trace");
    }
    std::vector<bool> nodes(trace_.node_count());
    uint64_t hits = 0;
    ForEachNode(trace_, [&](NodeId node) {
      const auto start = trace_.start(node);
      if (!start) {
        ++result_.untimed;
        return;
      }
      const Nanos end = *start + trace_.duration(node).value_or(Nanos{});
      const bool inside = std::ranges::any_of(ranges, [&](const Range& range) {
        return *start < range.end && (end > range.begin || *start >= range.begin);
      });
      nodes[node.index()] = inside;
      hits += inside ? 1 : 0;
    });
    if (hits == 0) {
      return Usage(KindName("time") +
                   ": nothing ran in this range; times are relative to the start of the trace");
    }
    Intersect(nodes);
    return {};
  }

  Status SelectPhases() {
    std::vector<Phase> wanted;
    for (const std::string& word : selection_.phases) {
      const auto found =
          std::ranges::find(kAllPhases, word, [](Phase phase) { return Name(phase); });
      if (found == std::end(kAllPhases)) {
        std::vector<std::string> names;
        for (const Phase phase : kAllPhases) names.emplace_back(Name(phase));
        return Usage(fmt::format("{}: expected {}{}", FilterName("phase", word),
                                 fmt::join(names, ", "), DidYouMean(word, names)));
      }
      wanted.push_back(*found);
    }
    if (!spans_.empty()) {
      SelectSpans(
          [&](const ProgramPart& part) { return std::ranges::count(wanted, part.phase) != 0; });
      return {};
    }
    const std::vector<Phase> phases = PhasesByLabels(trace_, order_);
    std::vector<bool> nodes(trace_.node_count());
    ForEachNode(trace_, [&](NodeId node) {
      // Marks and roots contain all phases.
      if (launchers_[node.index()] || IsRoot(trace_.kind(node))) return;
      if (IsStepMark(trace_.name(node))) return;
      nodes[node.index()] = std::ranges::count(wanted, phases[node.index()]) != 0;
    });
    AddLaunched(nodes);
    Intersect(nodes);
    return {};
  }

  Status SelectMicroBatches() {
    const std::string_view kind = selection_.sigil.empty() ? "micro_batch" : "micro-batch";
    Names names;
    for (const ProgramSpan& span : spans_) {
      if (span.part.micro_batch) names.insert(std::to_string(*span.part.micro_batch));
    }
    if (names.empty()) {
      return Usage(KindName(kind) +
                   ": the trace has no micro-batches; only generated traces have them");
    }
    for (const std::string& word : selection_.micro_batches) {
      if (names.contains(word)) continue;
      return Unknown(FilterName(kind, word), "such micro-batch", word, names);
    }
    SelectSpans([&](const ProgramPart& part) {
      return part.micro_batch &&
             std::ranges::count(selection_.micro_batches, std::to_string(*part.micro_batch)) != 0;
    });
    return {};
  }

  Status SelectCommunication() {
    std::vector<bool> nodes(trace_.node_count());
    ForEachNode(trace_, [&](NodeId node) {
      const std::string_view schema = trace_.text(trace_.op_schema(node));
      nodes[node.index()] = IsCommunication(trace_.kind(node)) || trace_.comm(node) != nullptr ||
                            IsCommOperator(FullOperatorName(schema));
    });
    if (std::ranges::find(nodes, true) == nodes.end()) {
      return Usage(KindName("comm") + ": the trace has no communication");
    }
    // A backend begins and ends its labels on its own threads: a program's call that the trace has
    // below one belongs to another thread.
    const auto below = [&] {
      for (const NodeId node : order_) {
        const NodeId parent = trace_.parent(node);
        if (!parent || !nodes[parent.index()]) continue;
        const NodeKind kind = trace_.kind(node);
        const bool misplaced = (kind == NodeKind::kOperator || kind == NodeKind::kLabel) &&
                               !CommOfLabel(trace_.name(parent)).empty();
        if (!misplaced) nodes[node.index()] = true;
      }
    };
    below();
    AddLaunched(nodes);
    below();
    Intersect(nodes);
    return {};
  }

  const Trace& trace_;
  const Selection& selection_;
  std::vector<NodeId> launchers_;
  std::vector<NodeId> order_;                // parents before their children
  std::vector<ProgramSpan> spans_;           // stated in the trace
  std::vector<const ProgramSpan*> span_of_;  // by node
  SelectedNodes result_;
};

}  // namespace

bool IsNamed(const Trace& trace, NodeId node, std::string_view pattern) {
  if (IsRoot(trace.kind(node))) return false;
  if (Matches(pattern, trace.name(node))) return true;
  const std::string_view schema = trace.text(trace.op_schema(node));
  return !schema.empty() && Matches(pattern, FullOperatorName(schema));
}

Result<SelectedNodes> SelectNodes(const Trace& trace, const Selection& selection) {
  return Selector(trace, selection).Run();
}

}  // namespace etude
