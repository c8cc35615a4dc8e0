#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "src/base/result.h"

namespace etude {

// Where a tried-out operator announces itself, so that the parent knows which one killed a child.
using Announce = std::function<void(uint32_t position)>;

struct ChildDeath {
  uint32_t position = UINT32_MAX;
  std::string how;
};
// Runs `work` in a forked child and returns what it returned; kInternal if it threw. The child's
// memory, and what libtorch caches in it, are gone with it: the caller's heap stays as it was. If
// the child dies, `died` gets the position announced last and the signal's name, and the result is
// an error. kUnavailable if the system gives no process.
Result<std::string> RunInChild(const std::function<Result<std::string>(const Announce&)>& work,
                               std::optional<ChildDeath>& died);

}  // namespace etude
