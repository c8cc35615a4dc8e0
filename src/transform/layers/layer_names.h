#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace etude {

// Names of labels that contain the number of a layer, such as "nn.Module: Net.blocks.3.fc
// (Linear)". Not thread-safe.
class LayerNames {
 public:
  explicit LayerNames(size_t layers) : names_(layers) {}

  // Adds a name that appears in a layer.
  void Add(size_t layer, std::string_view name) { names_[layer].emplace(name); }
  // Returns `name`, of the layer `from`, for the layer `to`: a number between dots changes if the
  // name with a number of at most 16 more or less appears in the layer after or before `from`.
  // Other names stay.
  std::string Of(std::string_view name, size_t from, size_t to) const;

 private:
  std::vector<std::unordered_set<std::string>> names_;  // by layer
};

}  // namespace etude
