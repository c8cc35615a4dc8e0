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

// A trace of a recipe, with its name in messages.
struct ComposeInput {
  const Trace* trace = nullptr;
  std::string name;
  std::optional<int64_t> threads;  // of PyTorch's pool during the recording, if known
};

struct Composed {
  Trace trace;
  Composition composition;
};

// Composes one trace with one step from the parts of `recipe`, which run one after the other,
// repeated as specified: docs/formats/recipe.md. `inputs` are its traces, in its order.
//
// kBadInput for selections that match nothing, traces that are not host traces, and more nodes than
// `limits` allow.
Result<Composed> Compose(const Recipe& recipe, std::span<const ComposeInput> inputs,
                         const Limits& limits);

}  // namespace etude
