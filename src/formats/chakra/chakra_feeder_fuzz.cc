#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/formats/chakra/chakra_feeder.h"
#include "src/formats/fuzz_support.h"

namespace {

using etude::chakra::Feeder;

// Returns true if all texts are parts of the message and each attribute can be found.
bool LookAt(const etude::chakra::NodeView& node) {
  size_t bytes = node.name().size();
  for (const auto& io : {node.inputs(), node.outputs()}) {
    bytes += io.values.size() + io.shapes.size() + io.types.size();
  }
  bool good = bytes <= node.message().size();
  for (const auto& attr : node.attrs()) good = good && node.FindAttr(attr.name);
  const size_t deps = node.ctrl_deps().size() + node.data_deps().size();
  const bool timed = node.start_micros() || node.duration_micros() || node.type() != 0;
  return good && deps <= node.message().size() && (!timed || !node.message().empty());
}

}  // namespace

// Runs Chakra traces like a simulator. The input's last byte determines the window and the number
// of nodes in flight. No node may occur twice, and only nodes handed out may finish.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const etude::RunContext context = etude::fuzz::SmallLimits();
  const uint8_t choice = size == 0 ? 0 : data[size - 1];
  etude::chakra::FeederOptions options;
  options.window = choice % 8;
  options.dependencies.ctrl = choice % 16 < 8;
  const size_t flight = 1 + choice / 16;
  auto feeder =
      Feeder::FromMemory("fuzz", std::string(etude::fuzz::Bytes(data, size)), options, context);
  if (!feeder) return 0;
  std::vector<uint64_t> in_flight;
  std::vector<uint64_t> seen;
  while (true) {
    const auto node = feeder->Next();
    if (!node) return 0;
    if (*node) {
      if (!LookAt(**node)) std::abort();
      seen.push_back((*node)->id());
      in_flight.push_back((*node)->id());
    }
    if (*node && in_flight.size() < flight) continue;
    if (in_flight.empty()) break;
    (void)feeder->Dependents(in_flight.back());
    if (!feeder->Finish(in_flight.back())) return 0;
    in_flight.pop_back();
  }
  std::ranges::sort(seen);
  const bool once = std::ranges::adjacent_find(seen) == seen.end();
  if (!once || !feeder->done() || feeder->counts().finished != seen.size()) std::abort();
  return 0;
}
