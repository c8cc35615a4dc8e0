#include "src/run/waits/communication_waits.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "src/run/calls/callers.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/enums.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

bool ReturnsWork(std::string_view schema) {
  const size_t results = schema.rfind("->");
  return results != std::string_view::npos && schema.find("c10d.Work", results) != schema.npos;
}

using Waits = std::vector<CommunicationWait>;

// Sets the end of each wait to that of the last Gloo label that belongs to it.
void FindEnds(const RecordedStep& step, std::span<const NodeId> operators, Waits& waits) {
  const Trace& trace = step.trace();
  std::unordered_map<NodeId, CommunicationWait*> by_node;
  for (CommunicationWait& wait : waits) by_node[operators[wait.communication]] = &wait;
  // Returns the wait of a node, or of its nearest caller that has one.
  const auto wait_around = [&](NodeId node) -> CommunicationWait* {
    while (node && step.position(node) != RecordedStep::kNowhere) {
      const auto found = by_node.find(node);
      if (found != by_node.end()) return found->second;
      node = step.enclosing_operator(step.position(node));
    }
    return nullptr;
  };
  for (const NodeId node : step.nodes()) {
    if (!IsHostThreadLabel(trace.name(node))) continue;
    const std::optional<Nanos> end = EndOf(trace, node);
    if (!end) continue;
    const NodeId issuer = IssuerOfLabel(trace, node);
    CommunicationWait* wait = wait_around(issuer ? issuer : trace.parent(node));
    if (wait != nullptr) wait->until = std::max(wait->until.value_or(*end), *end);
  }
}

// Returns the first of `operators` after `index` that began at `moment` or later.
uint32_t NextAfter(Nanos moment, const Trace& trace, std::span<const NodeId> operators,
                   uint32_t index) {
  uint32_t next = index + 1;
  while (next < operators.size()) {
    const auto start = trace.start(operators[next]);
    if (start && *start >= moment) break;
    ++next;
  }
  return next;
}

}  // namespace

std::vector<CommunicationWait> FindCommunicationWaits(const RecordedStep& step,
                                                      const DataFlow& flow,
                                                      std::span<const NodeId> operators) {
  const Trace& trace = step.trace();
  const auto count = static_cast<uint32_t>(operators.size());
  Waits waits;
  std::unordered_map<StorageVersion, uint32_t> users;  // by memory: last wait for it
  std::unordered_map<NodeId, uint32_t> numbers;        // numbers of waits, by communication
  std::vector<uint32_t> by_dependency;                 // by number: latest end
  for (uint32_t i = 0; i < count; ++i) {
    const NodeId node = operators[i];
    for (const DataFlow::Use& use : flow.inputs(node)) {
      const auto user = users.find(use.version);
      if (user == users.end()) continue;
      CommunicationWait& wait = waits[user->second];
      wait.before = std::min(wait.before, i);
    }
    // A composed trace has these dependencies if the communication has its own memory.
    const auto deps = trace.deps(node);
    const auto kinds = trace.dep_kinds(node);
    for (size_t k = 0; k < deps.size(); ++k) {
      if (kinds[k] != DepKind::kSync) continue;
      const auto number = numbers.find(deps[k]);
      if (number == numbers.end()) continue;
      CommunicationWait& wait = waits[number->second];
      wait.before = std::min(wait.before, i);
      by_dependency[number->second] = std::min(by_dependency[number->second], i);
    }
    if (!ReturnsWork(SchemaOf(trace, node))) continue;
    for (const DataFlow::Use& use : flow.inputs(node)) {
      if (use.version) users[use.version] = static_cast<uint32_t>(waits.size());
    }
    numbers.emplace(node, static_cast<uint32_t>(waits.size()));
    by_dependency.push_back(count);
    waits.push_back({.communication = i,
                     .before = IsSynchronous(trace, node) ? i + 1 : count,
                     .until = std::nullopt});
  }
  FindEnds(step, operators, waits);
  for (size_t number = 0; number < waits.size(); ++number) {
    CommunicationWait& wait = waits[number];
    const NodeId node = operators[wait.communication];
    const auto message = PointToPointFromName(BaseOperatorName(SchemaOf(trace, node)));
    if (!wait.until || !message) continue;
    // Data being sent may be read: waiting there for the other rank's receive could deadlock.
    const uint32_t most = message == NodeKind::kSend ? by_dependency[number] : wait.before;
    wait.before = std::min(most, NextAfter(*wait.until, trace, operators, wait.communication));
  }
  return waits;
}

TimeSet TimesOf(std::span<const CommunicationWait> waits, const RecordedStep& step,
                std::span<const NodeId> operators) {
  const Trace& trace = step.trace();
  std::vector<Interval> times;
  for (const CommunicationWait& wait : waits) {
    const std::optional<Nanos> begin = EndOf(trace, operators[wait.before - 1]);
    const bool is_last = wait.before == operators.size();
    const std::optional<Nanos> next = is_last
                                          ? step.mark() ? EndOf(trace, step.mark()) : std::nullopt
                                          : trace.start(operators[wait.before]);
    if (!begin || !next) continue;
    const Nanos end = std::min(*next, wait.until.value_or(*next));
    if (end > *begin) times.push_back({*begin, end});
  }
  return TimeSet(std::move(times));
}

}  // namespace etude
