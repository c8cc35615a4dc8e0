#pragma once

#include <cstdint>

#include "src/python/columns.h"

// Arrow C data and stream interfaces: https://arrow.apache.org/docs/format/CDataInterface.html.
// Names and order of members are defined by the standard.
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

// Arrow arrays over the memory of columns, which they keep alive. Non-contiguous columns and lists
// of integers are copied; validity bits for ids are computed.
struct ArrowPair {
  ArrowSchema schema{};
  ArrowArray array{};
};
ArrowPair ToArrow(const Column& column);
// Returns a struct array, which libraries import as a record batch.
ArrowPair ToArrow(const Columns& columns);
// Returns a list of dependencies per node: structs of target and kind.
ArrowPair ToArrow(const Dependencies& dependencies);

// Returns a stream of one batch.
ArrowArrayStream ToArrowStream(const Columns& columns);

// Releases a struct that no consumer has taken over.
template <typename T>
void ReleaseArrow(T& thing) {
  if (thing.release != nullptr) thing.release(&thing);
}

}  // namespace etude::python
