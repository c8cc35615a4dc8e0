#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace etude {

// The candidate nearest to `word` by edit distance, or "" if none is near.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace etude
