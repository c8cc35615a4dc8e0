#include "src/compat/stage/stage_collectives.h"

#include <optional>

#include <fmt/format.h>

namespace etude::stage {
namespace {

constexpr Symbol kParallelSymbols[] = {Symbol::kDp, Symbol::kTp, Symbol::kCp, Symbol::kEp};

// Data of a tensor on the ranks of one dimension.
struct Holding {
  enum class Kind { kWhole, kPart, kPartialSum };
  Kind kind = Kind::kWhole;
  Size part;  // kPart: the divided dimension, ignoring other kinds of parallelism
};

// Returns `size` as if only `symbol` divided it.
Size Along(Size size, Symbol symbol) {
  for (const Symbol other : kParallelSymbols) {
    if (other == symbol) continue;
    for (Product& term : size.terms) term[other] = 0;
    if (other == Symbol::kDp) size.per_dp = false;
  }
  return size;
}

Holding HoldingOf(const Layout& layout, Symbol symbol) {
  for (const Size& dimension : layout.shape) {
    if (dimension.Has(symbol)) return {Holding::Kind::kPart, Along(dimension, symbol)};
  }
  for (const Size& dimension : layout.partial) {
    if (dimension.Has(symbol)) return {Holding::Kind::kPartialSum, {}};
  }
  return {};
}

Result<std::optional<CollectiveType>> MatchHoldings(const Holding& from, const Holding& to) {
  using enum Holding::Kind;
  switch (to.kind) {
    case kWhole:
      switch (from.kind) {
        case kWhole: return std::nullopt;
        case kPart: return CollectiveType::kAllGather;
        case kPartialSum: return CollectiveType::kAllReduce;
      }
      break;
    case kPart:
      switch (from.kind) {
        case kWhole: return std::nullopt;  // each rank slices its part
        case kPart:
          if (from.part == to.part) return std::nullopt;
          return CollectiveType::kAllToAll;
        case kPartialSum: return CollectiveType::kReduceScatter;
      }
      break;
    case kPartialSum:
      if (from.kind == kPartialSum) return std::nullopt;
      break;
  }
  return MakeError(ErrorCode::kInternal, "a tensor is to become a partial sum that was none");
}

}  // namespace

Size Elements(const Shape& shape) {
  if (shape.size() == 1) return shape[0];
  Product product;
  for (const Size& dimension : shape) product = product * dimension.terms[0];
  return product;
}

Result<std::vector<Collective>> MatchCollectives(const Layout& from, const Layout& to,
                                                 std::span<const Symbol> dimensions) {
  std::vector<Collective> collectives;
  for (const Symbol symbol : dimensions) {
    ETUDE_ASSIGN_OR_RETURN(const std::optional<CollectiveType> type,
                           MatchHoldings(HoldingOf(from, symbol), HoldingOf(to, symbol)));
    if (type) collectives.push_back({*type, symbol});
  }
  return collectives;
}

}  // namespace etude::stage
