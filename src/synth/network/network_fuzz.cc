#include <cstdint>
#include <string_view>

#include "src/formats/fuzz_support.h"
#include "src/synth/network/network_file.h"
#include "src/synth/network/network_works.h"

// A network for `etude generate cnn` and `diffusion`.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = etude::ParseNetwork(etude::fuzz::Bytes(data, size), "fuzz", {});
  if (!model) return 0;
  const auto network = etude::MakeNetwork(*model);
  if (!network || network->parameters() < 0) __builtin_trap();
  if (!etude::CheckNetworkWork(*network, 3)) return 0;
  const etude::NetworkCosts costs(*network, 3, etude::NetworkPhase::kTraining);
  if (costs.Kept().count < 0) __builtin_trap();
  for (size_t i = 0; i < model->layers.size(); ++i) {
    const auto work = costs.Of(i).forward;
    if (work && work->flops < 0) __builtin_trap();
  }
  return 0;
}
