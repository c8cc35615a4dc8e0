#pragma once

#include "src/compat/chakra/node_text.h"
#include "src/compat/chakra_link/device_trace.h"
#include "src/compat/chakra_link/et_trace.h"
#include "src/compat/chakra_link/host_trace.h"
#include "src/compat/chakra_link/linker.h"

namespace etude::compat {

// What ReadEtTrace would read in the text of a linked trace, without that text. `host` must have
// its EtNodes, and gives them away. Views point where those of `host` and `device` do, and into
// `reader`.
EtTrace MakeLinkedEt(HostTrace& host, const DeviceTrace& device, const LinkedTrace& linked,
                     NodeTextReader& reader);

}  // namespace etude::compat
