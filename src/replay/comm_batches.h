#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace etude {

// Operators that a backend is given as one, the first and the last of them.
struct CommBatch {
  uint32_t first = 0;
  uint32_t last = 0;

  friend bool operator==(const CommBatch&, const CommBatch&) = default;
};

// Sends and receives that a program can have given its backend at once (`batch_isend_irecv`): those
// in one process group that follow one another, none of which is waited for before the last has
// begun. A trace does not say that they were, and NCCL, which does what it is given in order, waits
// for ever where two ranks send to each other first. One alone is a batch, too: PyTorch gives
// batches to another communicator than what is in none, and partners need the same. `groups`: of
// each operator that sends or receives its process group. `waits`: by operator, which earlier ones
// are waited for before it.
std::vector<CommBatch> FindCommBatches(std::span<const std::optional<std::string>> groups,
                                       std::span<const std::vector<uint32_t>> waits);

// That of `batches`, which are in order and apart, in which operator number `index` is; null if
// there is none.
const CommBatch* BatchOf(std::span<const CommBatch> batches, size_t index);

}  // namespace etude
