#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/compose/composition.h"
#include "src/compose/recipe.h"
#include "src/trace/trace.h"

namespace etude {

// A trace of a recipe, and what messages call it.
struct ComposeInput {
  const Trace* trace = nullptr;
  std::string name;
  std::optional<int64_t> threads;  // of PyTorch's pool when it was recorded, if known
};

struct Composed {
  Trace trace;
  Composition composition;
};

// Makes one trace with one step of the parts of `recipe`, which run one after the other as often as
// it says: docs/formats/recipe.md. `inputs` are its traces, in its order.
//
// kBadInput for selections that mean nothing, traces that are no host traces, and more nodes than
// `limits` allow.
Result<Composed> Compose(const Recipe& recipe, std::span<const ComposeInput> inputs,
                         const Limits& limits);

}  // namespace etude
