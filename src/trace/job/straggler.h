#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace etude {

// A rank that is slower than the others.
struct Straggler {
  int64_t rank = 0;
  double factor = 1;  // slowdown of its computations
};

// Parses "3:1.5"; nullopt for other text, a negative rank or a factor that is not above 0.
std::optional<Straggler> ParseStraggler(std::string_view text);

}  // namespace etude
