#include "src/run/waits/order_edge.h"

#include <array>

namespace etude {
namespace {

constexpr std::array<OrderReasonInfo, kOrderReasonCount> kReasons = {{
    {"control", "a control dependency of the trace", DepKind::kControl},
    {"data", "a data dependency of the trace", DepKind::kData},
    {"sync", "a synchronisation dependency of the trace", DepKind::kSync},
    {"thread_order", "next on its thread", DepKind::kData},
    {"stream_order", "next on its stream", DepKind::kSync},
    {"launch", "device work after the node that launched it", DepKind::kData},
    {"stream_wait", "a stream waited for an event of another stream", DepKind::kSync},
    {"event_sync", "a thread waited for an event", DepKind::kSync},
    {"stream_sync", "a thread waited for a stream", DepKind::kSync},
    {"device_sync", "a thread waited for all streams of a device", DepKind::kSync},
    {"blocking_copy", "a thread waited for its own copy", DepKind::kSync},
    {"collective", "a thread waited for a collective that it had called", DepKind::kSync},
    {"use_of_result", "a node used the result of a collective", DepKind::kSync},
    {"message", "a thread waited for its own send or receive", DepKind::kSync},
    {"idle_thread", "a thread did nothing until another one had ended something", DepKind::kSync},
}};

struct EvidenceInfo {
  std::string_view name;
  std::string_view help;
};
constexpr std::array<EvidenceInfo, kEvidenceCount> kEvidence = {{
    {"stated", "the trace says so: a dependency, an id, an argument or the name of a call"},
    {"by_memory", "both use the same memory"},
    {"by_thread", "both are on one thread, one behind the other"},
    {"by_time", "one began when the other had ended"},
}};

}  // namespace

const OrderReasonInfo& Info(OrderReason reason) { return kReasons[static_cast<size_t>(reason)]; }
std::string_view Name(Evidence evidence) { return kEvidence[static_cast<size_t>(evidence)].name; }
std::string_view Help(Evidence evidence) { return kEvidence[static_cast<size_t>(evidence)].help; }

OrderReason ReasonOf(DepKind kind) {
  switch (kind) {
    case DepKind::kControl: return OrderReason::kControl;
    case DepKind::kData: return OrderReason::kData;
    case DepKind::kSync: return OrderReason::kSync;
  }
  return OrderReason::kData;
}

}  // namespace etude
