#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

namespace etude {

// What a composed trace says of a part of itself.
struct ComposedPart {
  std::string name;
  std::string trace;    // the recipe's name of it
  std::string step;     // taken because the recipe names none; "" otherwise
  std::string changes;  // of the trace as a whole: "size 64, float32 as bfloat16"
  int64_t repetitions = 1;
  int64_t operators = 0;    // that run, none inside another, of one repetition
  int64_t untimed = 0;      // of these, not recorded, changed, or done by a device
  int64_t dropped = 0;      // operators that would run but for `drop`
  int64_t taken_apart = 0;  // operators whose parts run instead, as something in them does not
  int64_t replaced = 0;
  int64_t scaled = 0;  // communications that move another number of elements
  // The recorded time of the operators of one repetition; nullopt if one of them has none.
  std::optional<Nanos> expected;
};

// What a composed trace consists of. It is kept in the trace, as the fact "etude_composition".
struct Composition {
  std::vector<ComposedPart> parts;
  // Of PyTorch's pool when the parts were recorded; nullopt if unknown, or not the same of all.
  std::optional<int64_t> threads;

  // The time of the operators of a step, by their recorded times; nullopt if that of one is
  // unknown.
  std::optional<Nanos> expected() const;
  int64_t operators() const;
  int64_t untimed() const;
};

// Keeps `composition` among the facts of the trace that `builder` makes.
void KeepComposition(const Composition& composition, TraceBuilder& builder);

// That of a composed trace; nullopt of all others, and if it is damaged.
std::optional<Composition> CompositionOf(const Trace& trace);

// As it is kept, and as commands give it out.
std::string CompositionJson(const Composition& composition);

}  // namespace etude
