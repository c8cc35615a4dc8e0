#pragma once

#include "src/report/certificate/run_facts.h"

namespace etude::suite {

// What the system says of this machine.
MachineFacts ThisMachine();

}  // namespace etude::suite
