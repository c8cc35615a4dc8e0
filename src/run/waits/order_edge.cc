#include "src/run/waits/order_edge.h"

namespace etude {

OrderReason ReasonOf(DepKind kind) {
  switch (kind) {
    case DepKind::kControl: return OrderReason::kControl;
    case DepKind::kData: return OrderReason::kData;
    case DepKind::kSync: return OrderReason::kSync;
  }
  return OrderReason::kData;
}

DepKind KindOf(OrderReason reason) {
  switch (reason) {
    case OrderReason::kControl: return DepKind::kControl;
    case OrderReason::kData:
    case OrderReason::kThreadOrder:
    case OrderReason::kLaunch: return DepKind::kData;
    case OrderReason::kSync:
    case OrderReason::kStreamOrder:
    case OrderReason::kStreamWait:
    case OrderReason::kEventSync:
    case OrderReason::kStreamSync:
    case OrderReason::kDeviceSync:
    case OrderReason::kBlockingCopy:
    case OrderReason::kCollective:
    case OrderReason::kUseOfResult:
    case OrderReason::kMessage:
    case OrderReason::kIdleThread: return DepKind::kSync;
  }
  return DepKind::kData;
}

}  // namespace etude
