#pragma once

// Feeders of a Chakra trace's nodes in dependency order: Etude's, and one with Chakra's names.

#include "src/compat/chakra/et_feeder.h"       // IWYU pragma: export
#include "src/formats/chakra/chakra_feeder.h"  // IWYU pragma: export
