#include "src/synth/network/network_memory.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace etude {
namespace {

struct ResultUse {
  std::optional<size_t> last;      // layer whose forward work uses it
  bool waits = false;              // used beyond the next computation
  std::optional<size_t> backward;  // the last layer on the way back that needs it
};

std::vector<ResultUse> FindUses(const Network& network, const NetworkCosts& costs, bool training) {
  const std::vector<NetworkLayer>& layers = network.model.layers;
  std::vector<ResultUse> uses(layers.size());
  std::vector<int64_t> places(layers.size(), -1);  // of forward works
  int64_t next = 0;
  // Inference has no loss.
  for (size_t i = 0; i < layers.size() - (training ? 0 : 1); ++i) {
    if (!costs.Of(i).forward) continue;
    places[i] = next++;
    for (const size_t input : layers[i].inputs) {
      const size_t result = costs.ViewedBy(input);
      uses[result].last = i;
      uses[result].waits = uses[result].waits || places[i] > places[result] + 1;
    }
  }
  for (size_t i = layers.size(); training && i-- > 0;) {
    for (const size_t result : costs.NeedsOf(i).results) uses[result].backward = i;
  }
  return uses;
}

}  // namespace

NetworkMemory FindNetworkMemory(const Network& network, const NetworkCosts& costs,
                                NetworkPhase phase) {
  const bool training = phase == NetworkPhase::kTraining;
  const size_t layers = network.model.layers.size();
  NetworkMemory memory{.made = std::vector<Bytes>(layers),
                       .freed_forward = std::vector<Bytes>(layers),
                       .freed_backward = std::vector<Bytes>(layers)};
  const auto add = [](Bytes& to, Bytes bytes) { to = to + bytes; };
  const std::vector<ResultUse> uses = FindUses(network, costs, training);
  for (size_t i = 0; i < layers; ++i) {
    const ResultUse& use = uses[i];
    const bool sampled = i == 0 && network.model.denoises && !training;
    if (sampled || (!use.backward && !use.waits)) continue;
    add(memory.made[i], costs.ResultBytes(i));
    add(use.backward ? memory.freed_backward[*use.backward] : memory.freed_forward[*use.last],
        costs.ResultBytes(i));
  }
  for (size_t i = 0; training && i < layers; ++i) {
    const Bytes other = costs.NeedsOf(i).other;
    if (!network.model.denoises || i + 1 < layers) add(memory.made[i], other);
    add(memory.freed_backward[i], other);
  }
  return memory;
}

}  // namespace etude
