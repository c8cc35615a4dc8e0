#pragma once

#include "src/compat/chakra/node_text.h"
#include "src/compat/chakra_link/device_trace.h"
#include "src/compat/chakra_link/et_trace.h"
#include "src/compat/chakra_link/host_trace.h"
#include "src/compat/chakra_link/linker.h"

namespace etude::compat {

// Returns the result of ReadEtTrace for the linked trace, without making its text. `host` must
// contain EtNodes, which are moved out. Views point to the same texts as those of `host` and
// `device`, and into `reader`.
EtTrace MakeLinkedEt(HostTrace& host, const DeviceTrace& device, const LinkedTrace& linked,
                     NodeTextReader& reader);

}  // namespace etude::compat
