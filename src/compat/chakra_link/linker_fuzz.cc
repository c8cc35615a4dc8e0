#include "src/compat/chakra_link/linker.h"

#include <cstdint>
#include <string_view>

#include "src/base/run_context.h"
#include "src/compat/chakra/et_converter.h"
#include "src/compat/chakra_link/critical_path.h"
#include "src/compat/chakra_link/device_trace.h"
#include "src/compat/chakra_link/et_trace.h"
#include "src/compat/chakra_link/host_trace.h"
#include "src/compat/chakra_link/linked_et.h"
#include "src/compat/chakra_link/linked_writer.h"
#include "src/formats/fuzz_support.h"

namespace {

using etude::Status;

Status Discard(std::string_view) { return {}; }

Status Convert(std::string_view text, const etude::Limits& limits) {
  etude::compat::NodeTextReader reader(limits.depth);
  ETUDE_ASSIGN_OR_RETURN(auto trace, etude::compat::ReadEtTrace(text, "fuzz", limits, reader));
  return etude::compat::WriteChakraEt(trace, "fuzz", Discard);
}

Status Link(std::string_view host_text, std::string_view device_text, const etude::Limits& limits) {
  etude::compat::NodeTextReader reader(limits.depth);
  ETUDE_ASSIGN_OR_RETURN(
      auto host,
      etude::compat::ReadHostTrace(host_text, "host", {.want_members = true, .want_et_nodes = true},
                                   limits, reader));
  ETUDE_ASSIGN_OR_RETURN(const auto device,
                         etude::compat::ReadDeviceTrace(device_text, "device", limits));
  ETUDE_ASSIGN_OR_RETURN(const auto syncs, etude::compat::FindCriticalSyncDeps(device, "device"));
  ETUDE_ASSIGN_OR_RETURN(
      const auto linked,
      etude::compat::LinkTraces(host, device, syncs, {.host = "host", .device = "device"}));
  ETUDE_RETURN_IF_ERROR(etude::compat::WriteLinkedJson(host, device, linked, Discard));
  auto trace = etude::compat::MakeLinkedEt(host, device, linked, reader);
  return etude::compat::WriteChakraEt(trace, "fuzz", Discard);
}

}  // namespace

// Fuzzes Chakra's linker and converter: a host trace, and after a line "===" a device trace.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto [host, device] = etude::fuzz::TwoFiles(etude::fuzz::Bytes(data, size));
  const etude::Limits limits = etude::fuzz::SmallLimits().limits;
  (void)Convert(host, limits);
  (void)Link(host, device, limits);
  return 0;
}
