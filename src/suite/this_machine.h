#pragma once

#include "src/report/certificate/run_facts.h"

namespace etude::suite {

// Returns facts of this machine from the system.
MachineFacts ThisMachine();

}  // namespace etude::suite
