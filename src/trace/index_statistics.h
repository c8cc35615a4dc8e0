#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace etude {

// Statistics of the elements of an integer tensor that an operator reads
// (docs/models/index_statistics.md). Traces store them as text, beside the range of the tensor.
struct IndexStatistics {
  uint64_t tensor = 0;         // index among the tensors of the node's inputs, as in tensor_range
  uint64_t elements = 0;       // number of examined elements: all, or a sample
  uint64_t distinct = 0;       // number of distinct values among these
  uint64_t equal_pairs = 0;    // number of pairs of these with equal values
  bool ascends = false;        // no element of the whole tensor is less than its predecessor
  std::optional<double> skew;  // Zipf exponent; nullopt if the sample is too small

  friend bool operator==(const IndexStatistics&, const IndexStatistics&) = default;
};

// Returns the exponent s >= 0 of Zipf's law over `span` values (the r-th most frequent has a
// probability proportional to r^-s) for which `elements` draws give `equal_pairs` equal pairs.
// nullopt if `span` is 1, or if fewer than 16 pairs are equal and a uniform distribution would also
// give fewer than 16.
std::optional<double> FitZipf(uint64_t elements, uint64_t equal_pairs, uint64_t span);

// Returns {"<tensor>":{"elements":…,"distinct":…,"equal_pairs":…,"ascends":…,"skew":…},…}; "" for
// none.
std::string ToText(const std::vector<IndexStatistics>& statistics);
// Parses the output of ToText; nullopt for other text.
std::optional<std::vector<IndexStatistics>> ParseIndexStatistics(std::string_view text);

// Recorded elements of an index tensor of a node.
struct IndexValues {
  uint64_t tensor = 0;
  std::vector<int64_t> values;  // in the order of the tensor

  friend bool operator==(const IndexValues&, const IndexValues&) = default;
};
// Parses {"<tensor>":[…],…}; nullopt for other text.
std::optional<std::vector<IndexValues>> ParseIndexValues(std::string_view text);

}  // namespace etude
