#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/synth/network/network.h"

namespace etude {

// Builds known networks from layers. Adding a layer returns its index.
class NetworkBuilder {
 public:
  // Window on an image's side: kernel, stride, groups; padded so that stride 1 keeps the side.
  struct Window {
    int64_t kernel = 3;
    int64_t stride = 1;
    int64_t groups = 1;
    bool bias = true;
  };

  // Sets the unit of the layers from here on; their names begin with it.
  void Unit(std::string unit) { unit_ = std::move(unit); }

  // Adds a layer; `layer` has its kind and other facts.
  size_t Add(std::string_view name, std::vector<size_t> inputs, NetworkLayer layer) {
    layer.name = unit_.empty() ? std::string(name) : fmt::format("{}.{}", unit_, name);
    layer.inputs = std::move(inputs);
    layer.unit = unit_;
    model_.layers.push_back(std::move(layer));
    return model_.layers.size() - 1;
  }
  size_t Plain(std::string_view name, std::vector<size_t> inputs, LayerKind kind) {
    return Add(name, std::move(inputs), {.kind = kind});
  }
  size_t Input(std::string_view name, Shape shape) {
    return Add(name, {}, {.kind = LayerKind::kInput, .shape = shape});
  }
  size_t Conv(std::string_view name, size_t in, int64_t channels, Window window) {
    const int64_t padding = (window.kernel - 1) / 2;
    return Add(name, {in},
               {.kind = LayerKind::kConv,
                .shape = {.channels = channels},
                .kernel = {window.kernel, window.kernel},
                .stride = {window.stride, window.stride},
                .padding = {padding, padding},
                .groups = window.groups,
                .bias = window.bias});
  }
  size_t Linear(std::string_view name, size_t in, int64_t channels, bool bias = true) {
    return Add(name, {in},
               {.kind = LayerKind::kLinear, .shape = {.channels = channels}, .bias = bias});
  }
  size_t MaxPool(std::string_view name, size_t in, Window window) {
    const int64_t padding = (window.kernel - 1) / 2;
    return Add(name, {in},
               {.kind = LayerKind::kMaxPool,
                .kernel = {window.kernel, window.kernel},
                .stride = {window.stride, window.stride},
                .padding = {padding, padding}});
  }
  size_t GroupNorm(std::string_view name, size_t in) {
    return Add(name, {in}, {.kind = LayerKind::kGroupNorm, .groups = 32});
  }
  size_t Slice(std::string_view name, size_t in, int64_t channels, int64_t offset) {
    return Add(name, {in},
               {.kind = LayerKind::kSlice, .shape = {.channels = channels}, .offset = offset});
  }

  NetworkModel& model() { return model_; }

 private:
  NetworkModel model_;
  std::string unit_;
};

}  // namespace etude
