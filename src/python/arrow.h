#pragma once

#include <cstdint>

#include "src/python/columns.h"

// The Arrow C data and stream interfaces: https://arrow.apache.org/docs/format/CDataInterface.html.
// The names and the order of members are the standard's; programs that pass these structs to each
// other share nothing else.
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

namespace etude::python {

// Arrays over the memory of the columns, which they keep alive. Copied are columns that are not
// contiguous in memory and lists of integers; made are the bits that say which ids are none.
struct ArrowPair {
  ArrowSchema schema{};
  ArrowArray array{};
};
ArrowPair ToArrow(const Column& column);
// A struct array, which libraries take as a batch of records.
ArrowPair ToArrow(const Columns& columns);
// A list per node of what it waits for: structs of target and kind.
ArrowPair ToArrow(const Dependencies& dependencies);

// A stream of one batch.
ArrowArrayStream ToArrowStream(const Columns& columns);

// Lets go of what nobody took over.
template <typename T>
void ReleaseArrow(T& thing) {
  if (thing.release != nullptr) thing.release(&thing);
}

}  // namespace etude::python
