#pragma once

#include <cstdint>

#include "src/trace/trace.h"

namespace etude {

// Values of PyTorch's RecordScope (Trace::scope): the source of a recorded call.
inline constexpr uint8_t kFunctionScope = 0;  // FUNCTION: operators, and calls by autograd's engine
inline constexpr uint8_t kBackwardScope = 1;  // BACKWARD_FUNCTION
inline constexpr uint8_t kUserScope = 7;      // USER_SCOPE: a named part of the program

// Returns true for a label that is work of PyTorch's own on a thread: calls by autograd's engine,
// which have no schema and so are not operators. Its scope distinguishes it from named parts of the
// program, and its id from labels that Etude adds, which profiles do not have.
inline bool IsWorkingLabel(const Trace& trace, NodeId node) {
  return trace.kind(node) == NodeKind::kLabel && trace.place(node) == Place::kHost &&
         trace.scope(node).value_or(kUserScope) != kUserScope &&
         (trace.rf_id(node).value_or(0) != 0 || trace.traits().is_profile);
}

}  // namespace etude
