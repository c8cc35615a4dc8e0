#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace etude {

// A rank that is slower than the others.
struct Straggler {
  int64_t rank = 0;
  double factor = 1;  // its computations take so many times as long
};

// "3:1.5"; nullopt for another text, a negative rank and a factor that is none above 0.
std::optional<Straggler> ParseStraggler(std::string_view text);

}  // namespace etude
