#include "src/transform/dimensions/dimension_sizes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/transform/dimensions/step_dimensions.h"

namespace etude {
namespace {

class DimensionResizer {
 public:
  DimensionResizer(const Trace& trace, const DimensionSizes& wanted)
      : wanted_(wanted), dimensions_(trace), factors_(dimensions_.factors()) {}

  Result<DimensionEdit> Run(const Limits& limits) {
    ETUDE_RETURN_IF_ERROR(dimensions_.Check());
    FindMeanings();
    ETUDE_RETURN_IF_ERROR(Resize("--batch", wanted_.batch, batch_));
    ETUDE_RETURN_IF_ERROR(Resize("--sequence", wanted_.sequence, sequence_));
    ETUDE_RETURN_IF_ERROR(Resize("--ffn", wanted_.ffn, ffn_));
    if (wanted_.vocabulary) ETUDE_RETURN_IF_ERROR(CheckTables());
    ETUDE_RETURN_IF_ERROR(Resize("--vocab", wanted_.vocabulary, vocabulary_));
    if (wanted_.heads) ETUDE_RETURN_IF_ERROR(CheckKeys());
    ETUDE_RETURN_IF_ERROR(Resize("--heads", wanted_.heads, heads_));
    ETUDE_RETURN_IF_ERROR(Resize("--hidden", wanted_.hidden, hidden_));
    if (wanted_.hidden) ETUDE_RETURN_IF_ERROR(CheckOtherHidden());
    if (wanted_.heads || wanted_.hidden) ETUDE_RETURN_IF_ERROR(ResizeHeads());
    ETUDE_RETURN_IF_ERROR(FollowShifts());
    if (wanted_.sequence) ETUDE_RETURN_IF_ERROR(CheckPositions());
    ETUDE_ASSIGN_OR_RETURN(static_cast<ResizedStep&>(result_),
                           ResizeStep(dimensions_, sizes_, limits));
    return std::move(result_);
  }

 private:
  using Set = std::set<FactorId>;

  bool IsOfWeights(FactorId factor) const { return dimensions_.of_weights().contains(factor); }

  void FindMeanings() {
    const OperatorRoles& roles = dimensions_.roles();
    // The length is what attention sums over.
    const Set lengths = dimensions_.Finest(roles.lengths());
    for (const FactorId factor : dimensions_.of_activations()) {
      if (!lengths.contains(factor) && !IsOfWeights(factor)) batch_.insert(factor);
    }
    // Some products may use one position only, such as those of a classifier.
    for (const FactorId factor : dimensions_.of_some_activations()) {
      if (lengths.contains(factor)) sequence_.insert(factor);
    }
    Set repeated = dimensions_.Finest(roles.heads());
    repeated.merge(Set(dimensions_.repeated_without_weights()));
    Set depths = dimensions_.Finest(roles.depths());
    depths.merge(Set(dimensions_.summed_without_weights()));
    for (const auto& [factor, weights] : dimensions_.weight_factors()) {
      if (weights.made && depths.contains(factor)) depths_.insert(factor);
      if (!weights.is_passed() || depths.contains(factor)) continue;
      const bool is_whole = static_cast<bool>(factors_.limit(factor, FactorLimit::kWhole));
      if (repeated.contains(factor)) {
        heads_.insert(factor);
      } else if (!is_whole) {
        ffn_.insert(factor);
      }
    }
    for (const Heads& one : FindHeads()) {
      for (const FactorId factor : one.depth) ffn_.erase(factor);
    }
    FindHidden();
    FindVocabulary();
  }

  // The hidden dimension is what the first weight of each pair sums over.
  void FindHidden() {
    dimensions_.ForEachOperator([&](uint32_t position, NodeId node) {
      const OperatorRole& role = dimensions_.roles().at(position);
      if (role.use != ValueUse::kProduct || role.summed.empty()) return;
      const auto weight = dimensions_.WeightOf(role, node);
      if (!weight) return;
      const Set summed = dimensions_.Finest(role.summed.front());
      Set of_weight;
      for (const auto& dim : dimensions_.tensors().Of(*weight, node)) {
        of_weight.merge(dimensions_.Finest(dim));
      }
      const bool is_first = std::ranges::any_of(of_weight, [&](FactorId factor) {
        const auto found = dimensions_.weight_factors().find(factor);
        return (ffn_.contains(factor) || heads_.contains(factor)) && !summed.contains(factor) &&
               found->second.made == position;
      });
      if (is_first) hidden_.insert(summed.begin(), summed.end());
    });
  }

  // The vocabulary is the classes of the loss, and the rows of tables of that size.
  void FindVocabulary() {
    for (const FactorId factor : dimensions_.Finest(dimensions_.roles().classes())) {
      if (IsOfWeights(factor)) vocabulary_.insert(factor);
    }
    for (const OperatorRoles::Table& table : dimensions_.roles().tables()) {
      rows_.merge(dimensions_.Finest(table.rows));
    }
    classes_ = vocabulary_;
    for (const FactorId factor : rows_) {
      const bool is_same = std::ranges::any_of(
          classes_, [&](FactorId of) { return factors_.size(of) == factors_.size(factor); });
      if (is_same) vocabulary_.insert(factor);
    }
  }

  // The classes of a model with tables are its words only if a table has as many rows.
  Status CheckTables() const {
    if (rows_.empty() || classes_.empty() || vocabulary_.size() > classes_.size()) return {};
    const bool is_tied =
        std::ranges::any_of(classes_, [&](FactorId factor) { return rows_.contains(factor); });
    if (is_tied) return {};
    return BadInput(fmt::format(
        "--vocab: found {} classes and no table with as many rows, expected a model that predicts "
        "words; nearest possible: --second and --sizes, with a recording of another such size",
        factors_.size(*classes_.begin())));
  }

  Status Resize(std::string_view option, std::optional<int64_t> wanted, const Set& found) {
    if (!wanted) return {};
    std::set<int64_t> recorded;
    for (const FactorId factor : found) recorded.insert(factors_.size(factor));
    if (recorded.empty()) {
      return BadInput(fmt::format(
          "{}: found no dimension with this meaning in the recording{}; nearest possible: --second "
          "and --sizes, with a recording of another such size",
          option, option == "--batch" ? " (a batch of 1 is none)" : ""));
    }
    const bool is_one = option == "--batch" || option == "--sequence" || option == "--hidden";
    if (recorded.size() > 1 || (is_one && found.size() > 1)) {
      return BadInput(fmt::format(
          "{}: found several dimensions that may be meant, of {}, expected one size; nearest "
          "possible: --second and --sizes, with a recording of another such size",
          option, fmt::join(recorded, " and ")));
    }
    for (const FactorId factor : found) {
      ETUDE_RETURN_IF_ERROR(SetSize(option, factor, *wanted));
    }
    result_.dimensions.push_back({.option = std::string(option),
                                  .before = *recorded.begin(),
                                  .after = *wanted,
                                  .factors = found.size()});
    return {};
  }

  Status SetSize(std::string_view option, FactorId factor, int64_t size) {
    for (const FactorLimit limit : {FactorLimit::kUnknown, FactorLimit::kPart}) {
      const NodeId by = factors_.limit(factor, limit);
      if (!by) continue;
      return BadInput(fmt::format(
          "{}: found {} on this dimension, {}; nearest possible: --second and --sizes, with a "
          "recording of another such size",
          option, dimensions_.PlaceOf(by),
          limit == FactorLimit::kUnknown ? "whose use of it is unknown"
                                         : "whose result does not follow from its size"));
    }
    sizes_[factor] = size;
    return {};
  }

  // Dimensions without one place of another one follow it, and the other way round.
  Status FollowShifts() {
    const std::vector<TensorFactors::Shift>& shifts = dimensions_.tensors().shifts();
    // Ends, as each change gives one more factor a size.
    for (bool changes = true; changes;) {
      changes = false;
      for (const TensorFactors::Shift& shift : shifts) {
        const std::vector<FactorId> longer = factors_.Expand({&shift.longer, 1});
        const std::vector<FactorId> shorter = factors_.Expand({&shift.shorter, 1});
        const int64_t more = ProductOf(longer, [&](FactorId of) { return SizeOf(of); });
        const int64_t less = ProductOf(shorter, [&](FactorId of) { return SizeOf(of); });
        if (more == less + 1) continue;
        const bool follows =
            more == ProductOf(longer, [&](FactorId of) { return factors_.size(of); });
        const std::vector<FactorId>& other = follows ? longer : shorter;
        const int64_t wanted = follows ? less + 1 : more - 1;
        if (other.size() != 1 || sizes_.contains(other.front()) || wanted < 1) {
          return BadInput(fmt::format(
              "found {} on a dimension and all but one place of it, expected that both change; "
              "nearest possible: --second and --sizes, with a recording of another such size",
              dimensions_.PlaceOf(shift.by)));
        }
        ETUDE_RETURN_IF_ERROR(SetSize(result_.dimensions.front().option, other.front(), wanted));
        changes = true;
      }
    }
    return {};
  }

  int64_t SizeOf(FactorId factor) const {
    const auto other = sizes_.find(factor);
    return other == sizes_.end() ? factors_.size(factor) : other->second;
  }

  // A weight may have another dimension of the hidden size, such as that of a layer between the
  // last block and the output. Whether it is the hidden size, too, cannot be told.
  Status CheckOtherHidden() const {
    if (hidden_.size() != 1) return {};
    const int64_t size = factors_.size(*hidden_.begin());
    for (const auto& dim : dimensions_.weight_dims()) {
      if (dim.size() != 1 || factors_.size(dim.front()) != size) continue;
      const FactorId factor = dim.front();
      const bool is_known = hidden_.contains(factor) || ffn_.contains(factor) ||
                            vocabulary_.contains(factor) || batch_.contains(factor) ||
                            sequence_.contains(factor);
      if (is_known) continue;
      return BadInput(fmt::format(
          "--hidden: found several dimensions of {} in weights, expected one; nearest possible: "
          "--second and --sizes, with a recording of another such size",
          size));
    }
    return {};
  }

  // Dimension of a weight that is heads times their depth.
  struct Heads {
    std::vector<FactorId> heads;  // several if some of them share keys
    std::vector<FactorId> depth;  // several if operators use parts of it, as rotary embeddings do
  };

  template <typename SizeFn>
  static int64_t ProductOf(const std::vector<FactorId>& factors, SizeFn size) {
    int64_t product = 1;  // at most the largest number less one
    for (const FactorId factor : factors) {
      if (__builtin_mul_overflow(product, size(factor), &product)) return INT64_MAX - 1;
    }
    return product;
  }

  // Returns the dimensions of weights with heads. The depth of each head is next to the heads, also
  // where no product sums over it, such as that of values.
  std::vector<Heads> FindHeads() const {
    std::vector<Heads> found;
    const auto is_head = [&](FactorId factor) { return heads_.contains(factor); };
    for (const auto& dim : dimensions_.weight_dims()) {
      const auto begin = std::ranges::find_if(dim, is_head);
      if (begin == dim.end()) continue;
      const auto end = std::find_if_not(begin, dim.end(), is_head);
      found.push_back({.heads = {begin, end}, .depth = {end, dim.end()}});
    }
    // Between heads and their depth there may be the queries, keys and values of a head.
    const auto size = [&](FactorId factor) { return factors_.size(factor); };
    std::optional<int64_t> depth;
    for (const Heads& one : found) {
      if (one.depth.empty()) continue;
      const int64_t product = ProductOf(one.depth, size);
      depth = std::min(depth.value_or(product), product);
    }
    if (!depth) return found;
    for (Heads& one : found) {
      while (ProductOf(one.depth, size) > *depth) one.depth.erase(one.depth.begin());
    }
    return found;
  }

  std::string_view HeadsOption() const { return wanted_.heads ? "--heads" : "--hidden"; }

  tl::unexpected<Error> OtherHeads(std::string_view found, std::string_view expected) const {
    return BadInput(fmt::format(
        "{}: found {}, expected {}; nearest possible: --second and --sizes, with a recording of "
        "another such size",
        HeadsOption(), found, expected));
  }

  // Heads that share keys have two numbers, of which --heads gives one.
  Status CheckKeys() const {
    const auto share = [](const Heads& one) { return one.heads.size() > 1; };
    if (std::ranges::none_of(FindHeads(), share)) return {};
    return OtherHeads("heads that share keys", "as many keys as heads");
  }

  // Heads that together had the hidden size still have it, as for generated jobs.
  Status ResizeHeads() {
    const std::vector<Heads> found = FindHeads();
    const auto recorded = [&](FactorId factor) { return factors_.size(factor); };
    std::set<int64_t> counts;
    std::set<int64_t> depths;
    Set of_depth;
    for (const Heads& one : found) {
      counts.insert(ProductOf(one.heads, recorded));
      if (one.depth.empty()) continue;  // a weight of heads alone
      depths.insert(ProductOf(one.depth, recorded));
      of_depth.insert(one.depth.begin(), one.depth.end());
    }
    const bool is_depth =
        std::ranges::includes(of_depth, depths_) &&
        std::ranges::none_of(of_depth, [&](FactorId factor) { return heads_.contains(factor); });
    if (depths.size() > 1 || !is_depth) {
      return OtherHeads("attentions with different heads", "equal heads, next to their depth");
    }
    if (found.empty() || of_depth.empty()) return {};
    if (hidden_.size() != 1) {
      return OtherHeads(fmt::format("{} that may be the hidden size",
                                    hidden_.empty() ? "no dimension" : "several dimensions"),
                        "one");
    }
    const FactorId hidden = *hidden_.begin();
    if (*counts.rbegin() * *depths.begin() != factors_.size(hidden)) return {};
    const int64_t heads = wanted_.heads ? *wanted_.heads : *counts.rbegin();
    if (SizeOf(hidden) % heads != 0) {
      return BadInput(fmt::format(
          "{}: found {} heads, expected a divisor of the {} hidden units; nearest possible: "
          "--hidden {}",
          wanted_.hidden ? "--hidden" : "--heads", heads, SizeOf(hidden),
          std::max<int64_t>(SizeOf(hidden) / heads, 1) * heads));
    }
    for (const Heads& one : found) {
      ETUDE_RETURN_IF_ERROR(ResizeDepth(one.depth, SizeOf(hidden) / heads));
    }
    return {};
  }

  // Changes a depth by its largest factor: rotary embeddings use halves of it, or pairs.
  Status ResizeDepth(const std::vector<FactorId>& factors, int64_t depth) {
    const auto size = [&](FactorId factor) { return factors_.size(factor); };
    const FactorId largest = *std::ranges::max_element(factors, {}, size);
    const int64_t others = ProductOf(factors, size) / size(largest);
    const bool is_one = std::ranges::count(factors, size(largest), size) == 1;
    if (depth % others != 0 || !is_one) {
      return OtherHeads(
          fmt::format("operators on parts of a head, whose depth would be {}", depth),
          is_one ? fmt::format("a multiple of {}", others) : "parts of different sizes");
    }
    return SetSize(HeadsOption(), largest, depth / others);
  }

  // A table of positions must have a row for each.
  Status CheckPositions() const {
    for (const OperatorRoles::Table& table : dimensions_.roles().tables()) {
      const Set indices = dimensions_.Finest(table.indices);
      const bool has_batch =
          std::ranges::any_of(batch_, [&](FactorId factor) { return indices.contains(factor); });
      const bool has_sequence =
          std::ranges::any_of(sequence_, [&](FactorId factor) { return indices.contains(factor); });
      if (has_batch || !has_sequence) continue;
      int64_t rows = 1;
      for (const FactorId factor : dimensions_.Finest(table.rows)) rows *= SizeOf(factor);
      if (rows >= *wanted_.sequence) continue;
      return BadInput(fmt::format(
          "--sequence: found a table of {} positions, expected one for each of {}; nearest "
          "possible: --sequence {}",
          rows, *wanted_.sequence, rows));
    }
    return {};
  }

  const DimensionSizes& wanted_;
  StepDimensions dimensions_;
  const Factors& factors_;
  Set batch_;
  Set sequence_;
  Set ffn_;
  Set heads_;
  Set depths_;
  Set hidden_;
  Set vocabulary_;
  Set classes_;  // of the loss
  Set rows_;     // of tables
  TensorFactors::Sizes sizes_;
  DimensionEdit result_;
};

}  // namespace

Result<DimensionEdit> WithDimensionSizes(const Trace& trace, const DimensionSizes& sizes,
                                         const Limits& limits) {
  return DimensionResizer(trace, sizes).Run(limits);
}

}  // namespace etude
