#pragma once

#include "src/base/result.h"
#include "src/compat/chakra/et_converter.h"
#include "src/compat/chakra_link/device_trace.h"
#include "src/compat/chakra_link/host_trace.h"
#include "src/compat/chakra_link/linker.h"

namespace etude::compat {

// Writes the linked trace like chakra_trace_link: the host trace as printed by Python's
// json.dump(indent=4), with the additions of linking. `host` must contain its members.
Status WriteLinkedJson(const HostTrace& host, const DeviceTrace& device, const LinkedTrace& linked,
                       const Sink& sink);

}  // namespace etude::compat
