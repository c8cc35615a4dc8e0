#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace etude {

// What was seen of the elements of an integer tensor that an operator reads
// (docs/models/index_statistics.md). Traces keep it as text, beside the range of the tensor.
struct IndexStatistics {
  uint64_t tensor = 0;    // its number among the tensors of the node's inputs, as in tensor_range
  uint64_t elements = 0;  // looked at: all, or a sample
  uint64_t distinct = 0;  // values among these
  uint64_t equal_pairs = 0;    // pairs of these with the same value
  bool ascends = false;        // no element of the whole tensor is less than the one before it
  std::optional<double> skew;  // Zipf's exponent; unknown where the sample says too little

  friend bool operator==(const IndexStatistics&, const IndexStatistics&) = default;
};

// The exponent s >= 0 for which indices drawn by Zipf's law from `span` values, the r-th most
// frequent one with a probability proportional to r^-s, give as many equal pairs as there were
// among `elements`. nullopt where fewer than 16 pairs are equal and would be if all values were
// alike frequent, and where there is one value only.
std::optional<double> FitZipf(uint64_t elements, uint64_t equal_pairs, uint64_t span);

// {"<tensor>":{"elements":…,"distinct":…,"equal_pairs":…,"ascends":…,"skew":…},…}; "" for none.
std::string ToText(const std::vector<IndexStatistics>& statistics);
// What ToText wrote; nullopt for other text.
std::optional<std::vector<IndexStatistics>> ParseIndexStatistics(std::string_view text);

// Elements of index tensors of a node, where they were recorded.
struct IndexValues {
  uint64_t tensor = 0;
  std::vector<int64_t> values;  // in the order of the tensor

  friend bool operator==(const IndexValues&, const IndexValues&) = default;
};
// {"<tensor>":[…],…}; nullopt for other text.
std::optional<std::vector<IndexValues>> ParseIndexValues(std::string_view text);

}  // namespace etude
