#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

namespace etude {

// Description of a part in a composed trace.
struct ComposedPart {
  std::string name;
  std::string trace;    // its name in the recipe
  std::string step;     // chosen step if the recipe names none; "" otherwise
  std::string changes;  // of the trace as a whole: "size 64, float32 as bfloat16"
  int64_t repetitions = 1;
  int64_t operators = 0;    // topmost operators to run, per repetition
  int64_t untimed = 0;      // of these, without a recorded time: not recorded, changed, or done
                            // by a device
  int64_t dropped = 0;      // operators removed by `drop`
  int64_t taken_apart = 0;  // operators whose callees run instead, because something in them does
                            // not run
  int64_t replaced = 0;
  int64_t scaled = 0;  // communications that move another number of elements
  // Recorded time of the operators of one repetition; nullopt if one of them has none.
  std::optional<Nanos> expected;
};

// Contents of a composed trace, stored in the trace as the fact "etude_composition".
struct Composition {
  std::vector<ComposedPart> parts;
  // Size of PyTorch's pool during the recordings; nullopt if unknown, or if it differs between
  // parts.
  std::optional<int64_t> threads;

  // Returns the time of the operators of a step, by their recorded times; nullopt if one is
  // unknown.
  std::optional<Nanos> expected() const;
  int64_t operators() const;
  int64_t untimed() const;
};

// Stores `composition` as a fact of `builder`'s trace.
void KeepComposition(const Composition& composition, TraceBuilder& builder);

// Returns the composition of a composed trace; nullopt for all others, and if it is damaged.
std::optional<Composition> CompositionOf(const Trace& trace);

// Returns the JSON as stored, and as printed by commands.
std::string CompositionJson(const Composition& composition);

}  // namespace etude
