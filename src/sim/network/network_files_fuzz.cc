// Networks of the model etude-1.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/sim/network/network_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  // Large numbers make large networks, which say nothing more about the readers.
  int digits = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 3) return 0;
  }
  auto graph = etude::ParseNetworkGraph(text, "input");
  if (!graph) return 0;
  static_cast<void>(graph->Slow("0-1:0.5+1us"));
  if (!graph->Finish("input") || graph->npus() < 2) return 0;
  std::vector<uint32_t> links;
  etude::NetworkRoutes(*graph).Find(0, graph->npus() - 1, nullptr, links);
  return 0;
}
