#pragma once

#include "src/compat/device_trace.h"
#include "src/compat/et_trace.h"
#include "src/compat/host_trace.h"
#include "src/compat/linker.h"
#include "src/compat/node_text.h"

namespace etude::compat {

// What ReadEtTrace would read in the text of a linked trace, without that text. `host` must have
// its EtNodes, and gives them away. Views point where those of `host` and `device` do, and into
// `reader`.
EtTrace MakeLinkedEt(HostTrace& host, const DeviceTrace& device, const LinkedTrace& linked,
                     NodeTextReader& reader);

}  // namespace etude::compat
