#include "src/compose/part_plan.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "src/analysis/compare/step_kinds.h"
#include "src/compose/comm_scale.h"
#include "src/run/calls/callers.h"
#include "src/run/waits/communication_waits.h"
#include "src/run/waits/program_order.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/enums.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

using Span = PartClock::Span;

std::optional<Span> SpanOf(const Trace& trace, NodeId node) {
  const auto begin = trace.start(node);
  const auto duration = trace.duration(node);
  if (!begin || !duration) return std::nullopt;
  return Span{*begin, *begin + *duration};
}

// Returns the same time as disjoint ascending spans.
std::vector<Span> Joined(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::begin);
  std::vector<Span> joined;
  for (const Span& span : spans) {
    if (span.end <= span.begin) continue;
    if (!joined.empty() && span.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, span.end);
    } else {
      joined.push_back(span);
    }
  }
  return joined;
}

// Returns the parts of `spans` outside `without`; both are disjoint and ascending.
std::vector<Span> Difference(const std::vector<Span>& spans, const std::vector<Span>& without) {
  std::vector<Span> left;
  size_t next = 0;
  for (Span span : spans) {
    while (next < without.size() && without[next].end <= span.begin) ++next;
    for (size_t i = next; i < without.size() && without[i].begin < span.end; ++i) {
      if (without[i].begin > span.begin) left.push_back({span.begin, without[i].begin});
      span.begin = std::max(span.begin, without[i].end);
    }
    if (span.begin < span.end) left.push_back(span);
  }
  return left;
}

class PartPlanner {
 public:
  PartPlanner(const SourceTrace& source, const RecipePart& part, const std::string& trace_name)
      : source_(source), trace_(source.trace), part_(part), trace_name_(trace_name) {
    plan_.facts.name = part.name;
    plan_.facts.repetitions = part.repeat;
  }

  Result<PartPlan> Run() {
    ETUDE_RETURN_IF_ERROR(Choose());
    ETUDE_RETURN_IF_ERROR(LeaveOut());
    ETUDE_RETURN_IF_ERROR(Replace());
    TakeApart();
    Keep();
    ETUDE_RETURN_IF_ERROR(Scale());
    FindRuns();
    if (plan_.runs.empty()) {
      return Wrong(part_.select, "found no operator to run among the selected nodes");
    }
    FindWaits();
    FindClock();
    return std::move(plan_);
  }

 private:
  bool on_host(NodeId node) const { return trace_.place(node) != Place::kDevice; }
  static void Set(std::vector<bool>& nodes, NodeId node) { nodes[node.index()] = true; }

  tl::unexpected<Error> Wrong(const RecipeSelection& at, const std::string& message) const {
    return BadInput(fmt::format("{}: {}: {}", at.place, trace_name_, message));
  }
  Result<std::vector<bool>> Select(const RecipeSelection& what) const {
    Result<SelectedNodes> selected = SelectNodes(trace_, what.selection);
    if (!selected) return Wrong(what, selected.error().message);
    return std::move(selected->nodes);
  }

  // Without a selected step, one of several recorded steps is used: the typical one.
  Status Choose() {
    RecipeSelection select = part_.select;
    if (select.selection.steps.empty() && source_.steps.mark_count() > 1) {
      size_t index = MiddleKind(FindStepKinds(trace_)).typical;
      for (const NodeId node : source_.steps.nodes()) {
        if (!IsStepMark(trace_.name(node)) || index-- > 0) continue;
        plan_.facts.step = trace_.name(node);
        break;
      }
      select.selection.steps = {plan_.facts.step};
    }
    ETUDE_ASSIGN_OR_RETURN(chosen_, Select(select));
    selected_ = chosen_;
    // Work on a stream is selected by the operator that launched it.
    if (!select.selection.streams.empty()) {
      ForEachNode(trace_, [&](NodeId node) {
        NodeId launcher = source_.launchers[node.index()];
        if (!selected_[node.index()] || !launcher) return;
        if (!source_.is_operator(launcher)) launcher = source_.around(launcher);
        if (launcher) Set(chosen_, launcher);
      });
    }
    // An operator runs as a whole.
    for (const NodeId node : source_.steps.nodes()) {
      const NodeId around = source_.around(node);
      if (around && chosen_[around.index()]) Set(chosen_, node);
    }
    return {};
  }

  Status LeaveOut() {
    out_.resize(trace_.node_count());
    for (const RecipeSelection& drop : part_.drop) {
      ETUDE_ASSIGN_OR_RETURN(const std::vector<bool> nodes, Select(drop));
      bool any = false;
      ForEachNode(trace_, [&](NodeId node) {
        if (!nodes[node.index()] || IsRoot(trace_.kind(node))) return;
        Set(out_, node);
        any = any || chosen_[node.index()];
      });
      if (!any) return Wrong(drop, "drop: found no matching operator in the part");
    }
    for (const NodeId node : source_.steps.nodes()) {
      const NodeId around = source_.around(node);
      if (around && out_[around.index()]) Set(out_, node);
      const bool outermost = !around || !out_[around.index()];
      if (is_out(node) && source_.is_operator(node) && outermost) ++plan_.facts.dropped;
    }
    for (const NodeId node : source_.steps.nodes()) {
      if (WorksForOneOf(out_, node)) Set(out_, node);
    }
    return {};
  }
  // Returns true if `label` is that of a backend, on its own thread, for one of these operators.
  bool WorksForOneOf(const std::vector<bool>& operators, NodeId label) const {
    const NodeId call = IssuerOfLabel(trace_, label);
    return call && operators[call.index()];
  }
  bool is_out(NodeId node) const { return chosen_[node.index()] && out_[node.index()]; }

  Status Replace() {
    std::vector<bool> found(part_.replace.size());
    for (const NodeId node : source_.steps.nodes()) {
      const NodeId around = source_.around(node);
      if (around && (plan_.replaced.contains(around) || inside_replaced_.contains(around))) {
        inside_replaced_.insert(node);
        continue;
      }
      if (!chosen_[node.index()] || is_out(node) || !source_.is_operator(node)) continue;
      if (SchemaOf(trace_, node).empty()) continue;
      for (size_t i = 0; i < part_.replace.size(); ++i) {
        if (!IsNamed(trace_, node, part_.replace[i].op)) continue;
        plan_.replaced.emplace(node, &part_.replace[i]);
        found[i] = true;
        break;
      }
    }
    plan_.facts.replaced = static_cast<int64_t>(plan_.replaced.size());
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i]) continue;
      RecipeSelection one = part_.select;
      one.selection = {.operators = {part_.replace[i].op}, .sigil = "replace: "};
      ETUDE_RETURN_IF_ERROR(Select(one));
      return Wrong(part_.select, fmt::format("replace: op {}: found no such operator in the part",
                                             part_.replace[i].op));
    }
    return {};
  }

  // An operator that contains something that does not run as recorded cannot run as a whole.
  void TakeApart() {
    apart_.resize(trace_.node_count());
    const auto take_apart = [&](NodeId around) {
      while (around && !apart_[around.index()]) {
        Set(apart_, around);
        if (chosen_[around.index()] && !is_out(around)) ++plan_.facts.taken_apart;
        around = source_.around(around);
      }
    };
    for (const NodeId node : source_.steps.nodes()) {
      const bool changed = plan_.replaced.contains(node) || is_out(node);
      if (changed && source_.is_operator(node)) take_apart(source_.around(node));
    }
    ForEachNode(trace_, [&](NodeId node) {
      const NodeId launcher = source_.launchers[node.index()];
      if (!launcher || !is_out(node) || is_out(launcher)) return;
      take_apart(source_.is_operator(launcher) ? launcher : source_.around(launcher));
    });
  }

  // Returns true for communication with sizes.
  bool Moves(NodeId node) const {
    const std::string_view name = FullOperatorName(SchemaOf(trace_, node));
    return IsCommOperator(name) && CollectiveFromName(name) != CollectiveType::kBarrier;
  }

  void Keep() {
    kept_.resize(trace_.node_count());
    std::vector<bool> below_scaled(trace_.node_count());
    for (const NodeId node : source_.steps.nodes()) {
      const NodeId scaled_by = part_.scale_comm ? source_.around(node) : NodeId::None();
      if (scaled_by && (below_scaled[scaled_by.index()] || Moves(scaled_by))) {
        Set(below_scaled, node);
        // Drops helper operators inside a scaled communication: their sizes would change.
        if (source_.is_operator(node) && !Moves(node)) continue;
      }
      if (!chosen_[node.index()] || out_[node.index()] || apart_[node.index()]) continue;
      if (IsRoot(trace_.kind(node)) || inside_replaced_.contains(node)) continue;
      const NodeId around = source_.around(node);
      const bool launches = trace_.kind(node) == NodeKind::kRuntime;
      if (launches && around && !kept_[around.index()]) continue;
      Set(kept_, node);
    }
    // Labels around it stay, so that modules and phases do.
    const std::vector<bool> kept = kept_;
    for (const NodeId node : source_.steps.nodes()) {
      if (!kept[node.index()]) continue;
      for (NodeId above = trace_.parent(node); above; above = trace_.parent(above)) {
        if (!IsRoot(trace_.kind(above)) && !source_.is_operator(above)) Set(kept_, above);
      }
    }
    for (const NodeId node : source_.steps.nodes()) {
      if (kept_[node.index()]) plan_.nodes.push_back(node);
    }
    ForEachNode(trace_, [&](NodeId node) {
      const NodeId launcher = source_.launchers[node.index()];
      if (on_host(node) || !launcher || !kept_[launcher.index()] || out_[node.index()]) return;
      if (plan_.replaced.contains(launcher)) return;
      Set(kept_, node);
      plan_.nodes.push_back(node);
    });
    plan_.parents.resize(trace_.node_count());
    for (const NodeId node : plan_.nodes) {
      NodeId above = trace_.parent(node);
      while (above && !kept_[above.index()]) above = trace_.parent(above);
      plan_.parents[node.index()] = above;
    }
  }

  Status Scale() {
    if (!part_.scale_comm) return {};
    plan_.scaled.resize(trace_.node_count());
    for (const NodeId node : plan_.nodes) {
      const NodeId parent = plan_.parents[node.index()];
      const bool moves = Moves(node);
      if (!moves && !(parent && plan_.scaled[parent.index()]) &&
          !WorksForOneOf(plan_.scaled, node)) {
        continue;
      }
      plan_.scaled[node.index()] = true;
      if (moves && source_.is_operator(node)) ++plan_.facts.scaled;
      const Status scales = CheckScales(trace_, node, *part_.scale_comm);
      if (!scales) return Wrong(part_.select, "scale_comm: " + scales.error().message);
    }
    if (plan_.facts.scaled > 0) return {};
    return Wrong(part_.select, "scale_comm: found no communication in the part");
  }

  // Returns the outermost kept operator around a host node, itself included; kNone if there is
  // none.
  NodeId RunOf(NodeId node) const {
    NodeId run;
    for (; node; node = source_.around(node)) {
      if (kept_[node.index()] && source_.is_operator(node)) run = node;
    }
    return run;
  }

  void FindRuns() {
    // Operators with device work, which takes its time after them.
    std::unordered_set<NodeId> launches;
    for (const NodeId node : plan_.nodes) {
      if (const NodeId launcher = source_.launchers[node.index()]) launches.insert(RunOf(launcher));
    }
    Nanos expected;
    for (const NodeId node : plan_.nodes) {
      if (!source_.is_operator(node)) continue;
      if (RunOf(node) != node) continue;
      plan_.runs.push_back(node);
      const auto duration = trace_.duration(node);
      const bool changed =
          plan_.replaced.contains(node) || (part_.scale_comm && plan_.scaled[node.index()]);
      if (!duration || changed || launches.contains(node)) {
        ++plan_.facts.untimed;
      } else {
        expected = expected + *duration;
      }
    }
    plan_.facts.operators = static_cast<int64_t>(plan_.runs.size());
    if (plan_.facts.untimed == 0) plan_.facts.expected = expected;
  }

  // A communication that does not run as recorded, and the program's wait for it.
  struct Wait {
    NodeId communication;
    NodeId before;               // kNone: at the end of the part
    bool at_once = false;        // directly after it, whatever came next
    std::optional<Nanos> until;  // end of the communication, if known
  };

  bool IsScaled(NodeId node) const { return !plan_.scaled.empty() && plan_.scaled[node.index()]; }

  // Adds the waits for operators that are `changed` communication; their callees wait for nothing.
  template <class Operators, class Changed>
  void AddWaits(Operators is_operator, Changed is_changed) {
    const RecordedStep& steps = source_.steps;
    std::vector<NodeId> operators;
    std::optional<uint32_t> inside;  // up to this position, nodes are callees of a communication
    for (const NodeId node : steps.nodes()) {
      const uint32_t position = steps.position(node);
      if (inside && position <= *inside) continue;
      if (!source_.is_operator(node) || !is_operator(node)) continue;
      operators.push_back(node);
      if (is_changed(node)) inside = steps.last_inside(position);
    }
    for (const auto& wait : FindCommunicationWaits(steps, source_.flow, operators)) {
      const NodeId node = operators[wait.communication];
      if (!is_changed(node)) continue;
      const bool is_last = wait.before == operators.size();
      waits_.push_back({.communication = node,
                        .before = is_last ? NodeId::None() : operators[wait.before],
                        .at_once = IsSynchronous(trace_, node),
                        .until = wait.until});
    }
  }

  // Finds the waits for removed and for scaled communication; for the latter only kept operators
  // count.
  void FindWaits() {
    const auto communicates = [&](NodeId node) {
      return IsCommOperator(FullOperatorName(SchemaOf(trace_, node)));
    };
    AddWaits([&](NodeId node) { return chosen_[node.index()]; },
             [&](NodeId node) { return is_out(node) && communicates(node); });
    AddWaits([&](NodeId node) { return kept_[node.index()]; },
             [&](NodeId node) { return IsScaled(node) && communicates(node); });
    for (const Wait& wait : waits_) {
      if (is_out(wait.communication) || wait.at_once || !wait.before) continue;
      const NodeId run = RunOf(wait.before);
      if (!run || IsScaled(run) || run == RunOf(wait.communication)) continue;
      plan_.waits.emplace(run, wait.communication);
    }
  }

  // Ends of waits for removed communication: before an operator that runs or (kNone) at the end;
  // and ends of removed communication that was awaited at once; as far as known.
  struct LeftOutWaits {
    std::unordered_map<NodeId, Nanos> before;
    std::unordered_map<NodeId, Nanos> at_once;
  };
  LeftOutWaits FindLeftOutWaits() const {
    LeftOutWaits waits;
    for (const Wait& wait : waits_) {
      if (!wait.until || !is_out(wait.communication)) continue;
      const NodeId run = wait.before ? RunOf(wait.before) : NodeId::None();
      if (wait.at_once) {
        waits.at_once.emplace(wait.communication, *wait.until);
      } else if (run || !wait.before) {
        Nanos& until = waits.before.emplace(run, *wait.until).first->second;
        until = std::max(until, *wait.until);
      }
    }
    return waits;
  }

  void FindClock() {
    std::vector<Span> kept;
    std::optional<Span> whole;
    const auto cover = [&](const Span& span) {
      whole =
          whole ? Span{std::min(whole->begin, span.begin), std::max(whole->end, span.end)} : span;
    };
    for (const NodeId node : plan_.runs) {
      const auto span = SpanOf(trace_, node);
      if (!span) return;
      kept.push_back(*span);
      cover(*span);
    }
    // A selected label has its time; a label around selected nodes has not. A step ends with its
    // mark, although Gloo's threads may end a label later.
    const auto has_time = [&](NodeId node) { return on_host(node) && selected_[node.index()]; };
    const bool is_step = std::ranges::any_of(plan_.nodes, [&](NodeId node) {
      return has_time(node) && IsStepMark(trace_.name(node)) && SpanOf(trace_, node);
    });
    for (const NodeId node : plan_.nodes) {
      const auto span = SpanOf(trace_, node);
      if (!span || !has_time(node)) continue;
      if (!is_step || !IsHostThreadLabel(trace_.name(node))) cover(*span);
    }
    const LeftOutWaits waits = FindLeftOutWaits();
    std::vector<std::pair<Span, NodeId>> all;  // the operator if it is kept
    for (size_t i = 0; i < kept.size(); ++i) all.emplace_back(kept[i], plan_.runs[i]);
    for (const NodeId node : source_.steps.nodes()) {
      if (kept_[node.index()] || !source_.is_operator(node)) continue;
      const NodeId around = source_.around(node);
      if (around && !apart_[around.index()]) continue;
      auto span = SpanOf(trace_, node);
      if (!span) continue;
      if (const auto end = waits.at_once.find(node); end != waits.at_once.end()) {
        span->end = std::max(span->end, end->second);
      }
      all.emplace_back(*span, NodeId::None());
    }
    std::ranges::stable_sort(all, {}, [](const auto& one) { return one.first.begin; });
    std::vector<Span> left_out;
    Nanos reached = whole->begin;
    const auto leave_out_wait = [&](NodeId before, Nanos begin) {
      const auto until = waits.before.find(before);
      if (until != waits.before.end())
        left_out.push_back({reached, std::min(until->second, begin)});
    };
    for (const auto& [span, run] : all) {
      if (!run) {
        left_out.push_back({std::min(reached, span.begin), span.end});
      } else {
        leave_out_wait(run, span.begin);
      }
      reached = std::max(reached, span.end);
    }
    leave_out_wait(NodeId::None(), whole->end);
    plan_.clock.emplace(*whole, std::move(left_out), std::move(kept));
  }

  const SourceTrace& source_;
  const Trace& trace_;
  const RecipePart& part_;
  const std::string& trace_name_;
  // By node.
  std::vector<bool> selected_;  // by the recipe
  std::vector<bool> chosen_;    // with their operators
  std::vector<bool> out_;
  std::vector<bool> apart_;
  std::vector<bool> kept_;
  std::unordered_set<NodeId> inside_replaced_;
  std::vector<Wait> waits_;
  PartPlan plan_;
};

}  // namespace

PartClock::PartClock(Span whole, std::vector<Span> left_out, std::vector<Span> kept)
    : whole_(whole) {
  for (const Span& span : Difference(Joined(std::move(left_out)), Joined(std::move(kept)))) {
    const Span inside{std::max(span.begin, whole.begin), std::min(span.end, whole.end)};
    if (inside.end <= inside.begin) continue;
    const Nanos before = left_out_till_.empty() ? Nanos{} : left_out_till_.back();
    left_out_.push_back(inside);
    left_out_till_.push_back(before + (inside.end - inside.begin));
  }
}

Nanos PartClock::At(Nanos recorded) const {
  const Nanos time = std::clamp(recorded, whole_.begin, whole_.end);
  const auto next = std::ranges::upper_bound(left_out_, time, {}, &Span::begin);
  Nanos before;
  if (next != left_out_.begin()) {
    const auto last = static_cast<size_t>(next - left_out_.begin()) - 1;
    before = left_out_till_[last];
    if (time < left_out_[last].end) before = before - (left_out_[last].end - time);
  }
  return time - whole_.begin - before;
}

Result<PartPlan> PlanPart(const SourceTrace& source, const RecipePart& part,
                          const std::string& trace_name) {
  return PartPlanner(source, part, trace_name).Run();
}

}  // namespace etude
