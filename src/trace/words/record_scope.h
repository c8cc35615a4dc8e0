#pragma once

#include <cstdint>

#include "src/trace/trace.h"

namespace etude {

// Of PyTorch's RecordScope (Trace::scope), which says who recorded a call.
inline constexpr uint8_t kFunctionScope = 0;  // FUNCTION: operators, and calls of autograd's engine
inline constexpr uint8_t kBackwardScope = 1;  // BACKWARD_FUNCTION
inline constexpr uint8_t kUserScope = 7;      // USER_SCOPE: a part of the program that was named

// True for a label that is work of PyTorch's own on a thread: what autograd's engine calls, which
// has no schema and so is no operator. Its scope tells it from parts of the program, and its id
// from labels that Etude adds, which profiles have none of.
inline bool IsWorkingLabel(const Trace& trace, NodeId node) {
  return trace.kind(node) == NodeKind::kLabel && trace.place(node) == Place::kHost &&
         trace.scope(node).value_or(kUserScope) != kUserScope &&
         (trace.rf_id(node).value_or(0) != 0 || trace.traits().is_profile);
}

}  // namespace etude
