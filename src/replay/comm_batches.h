#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace etude {

// Range of operators that are passed to a backend as one batch.
struct CommBatch {
  uint32_t first = 0;
  uint32_t last = 0;

  friend bool operator==(const CommBatch&, const CommBatch&) = default;
};

// Finds sends and receives that the program may have submitted as one batch (`batch_isend_irecv`):
// consecutive ones in one process group, none of which is waited for before the last has begun. A
// trace does not record batches, and NCCL, which executes in order, deadlocks if two ranks both
// send first. A single operator is a batch, too: PyTorch uses another communicator for batches, and
// partners must agree. `groups`: process group of each operator that sends or receives. `waits`:
// earlier operators that are waited for before each operator.
std::vector<CommBatch> FindCommBatches(std::span<const std::optional<std::string>> groups,
                                       std::span<const std::vector<uint32_t>> waits);

// Returns the batch that contains operator `index`; null if there is none. `batches` must be
// ordered and disjoint.
const CommBatch* BatchOf(std::span<const CommBatch> batches, size_t index);

}  // namespace etude
