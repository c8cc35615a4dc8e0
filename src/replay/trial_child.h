#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "src/base/result.h"

namespace etude {

// Announces an operator before its trial, so that the parent can identify the one that killed a
// child.
using Announce = std::function<void(uint32_t position)>;

struct ChildDeath {
  uint32_t position = UINT32_MAX;
  std::string how;
};
// Runs `work` in a forked child and returns its result; kInternal if it threw. The caller's heap is
// unaffected: the child's memory and libtorch's caches end with it. If the child dies, `died`
// receives the last announced position and the signal's name, and an error is returned.
// kUnavailable if the system cannot create a process.
Result<std::string> RunInChild(const std::function<Result<std::string>(const Announce&)>& work,
                               std::optional<ChildDeath>& died);

}  // namespace etude
