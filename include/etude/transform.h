#pragma once

// Trace transformations and writers: link, convert, slice, merge.

#include "src/transform/edit/merge.h"   // IWYU pragma: export
#include "src/transform/edit/slice.h"   // IWYU pragma: export
#include "src/transform/link/link.h"    // IWYU pragma: export
#include "src/transform/to_chakra.h"    // IWYU pragma: export
#include "src/transform/write_trace.h"  // IWYU pragma: export
