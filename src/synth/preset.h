#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace etude {

// A named model with the source of its numbers.
template <typename Model>
struct Preset {
  std::string_view name;
  std::string_view source;
  Model model;
};

// Returns nullptr if there is none of this name.
template <typename Model>
const Preset<Model>* FindPreset(std::span<const Preset<Model>> presets, std::string_view name) {
  const auto found = std::ranges::find(presets, name, &Preset<Model>::name);
  return found == presets.end() ? nullptr : &*found;
}

}  // namespace etude
