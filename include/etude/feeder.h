#pragma once

// The nodes of a Chakra trace as their dependencies finish; and the same by Chakra's names.

#include "src/compat/chakra/et_feeder.h"       // IWYU pragma: export
#include "src/formats/chakra/chakra_feeder.h"  // IWYU pragma: export
