#include "src/compose/resize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/run/step/tensor_shape.h"
#include "src/transform/edit/rewrite.h"

namespace etude {
namespace {

using Wide = __int128;

constexpr int64_t kMostCount = int64_t{1} << 62;

std::optional<int64_t> Whole(Wide numerator, Wide denominator) {
  if (numerator % denominator != 0) return std::nullopt;
  const Wide count = numerator / denominator;
  if (count > kMostCount || count < -kMostCount) return std::nullopt;
  return static_cast<int64_t>(count);
}

bool Near(double a, double b) {
  constexpr double kRelative = 1e-9;
  return std::abs(a - b) <= kRelative * std::max(std::abs(a), std::abs(b));
}

// Begin and end times of the resized program. The time between two successive moments of the first
// recording is extrapolated on the line through both recordings, but is at least zero. As this
// truncates noise on one side only, the total is then scaled to the extrapolated total.
class TimesAt {
 public:
  TimesAt(const Trace& first, const Trace& second, const Resizing& sizes)
      : share_(static_cast<double>(sizes.wanted - sizes.first) /
               static_cast<double>(sizes.second - sizes.first)) {
    begins_.resize(first.node_count());
    ends_.resize(first.node_count());
    std::vector<Moment> moments;
    ForEachNode(first, [&](NodeId node) {
      const auto here = first.start(node);
      const auto there = second.start(node);
      if (!here || !there) return;
      moments.push_back({.here = *here, .there = *there, .at = &begins_[node.index()]});
      const auto length = first.duration(node);
      const auto other = second.duration(node);
      if (!length || !other) return;
      moments.push_back(
          {.here = *here + *length, .there = *there + *other, .at = &ends_[node.index()]});
    });
    if (moments.empty()) return;
    std::ranges::stable_sort(moments, {}, &Moment::here);
    std::vector<double> gaps;
    for (size_t i = 1; i < moments.size(); ++i) {
      gaps.push_back(std::max(0.0, OnLine(moments[i].here - moments[i - 1].here,
                                          moments[i].there - moments[i - 1].there)));
    }
    const double all = std::accumulate(gaps.begin(), gaps.end(), 0.0);
    const Nanos here = moments.back().here - moments.front().here;
    const Nanos there = std::ranges::max(moments, {}, &Moment::there).there -
                        std::ranges::min(moments, {}, &Moment::there).there;
    const bool grows = (there - here).count >= 0 || sizes.second < sizes.first;
    const bool shrinks = (there - here).count <= 0 || sizes.second > sizes.first;
    if (!grows || !shrinks) {
      // More noise than difference.
      for (const Moment& moment : moments) moment.at->reset();
      return;
    }
    const double whole = std::max(0.0, OnLine(here, there));
    const double factor = all > 0 ? std::min(1.0, whole / all) : 1;
    double at = static_cast<double>(moments.front().here.count);
    *moments.front().at = moments.front().here;
    for (size_t i = 1; i < moments.size(); ++i) {
      at += gaps[i - 1] * factor;
      *moments[i].at = Nanos{std::llround(at)};
    }
  }

  std::optional<Nanos> begin(NodeId node) const { return begins_[node.index()]; }
  std::optional<Nanos> duration(NodeId node) const {
    const auto& end = ends_[node.index()];
    return end ? std::optional(*end - *begins_[node.index()]) : std::nullopt;
  }

 private:
  struct Moment {
    Nanos here;
    Nanos there;
    std::optional<Nanos>* at;
  };

  double OnLine(Nanos here, Nanos there) const {
    return static_cast<double>(here.count) + static_cast<double>((there - here).count) * share_;
  }

  double share_;
  std::vector<std::optional<Nanos>> begins_;
  std::vector<std::optional<Nanos>> ends_;
};

class Resizer {
 public:
  Resizer(const Trace& first, const Trace& second, const Resizing& sizes)
      : first_(first), second_(second), sizes_(sizes), times_(first, second, sizes) {}

  Result<Resized> Run(const Limits& limits) {
    ETUDE_RETURN_IF_ERROR(CheckNodes());
    auto trace = RewriteTrace(first_, limits, [&](RewrittenNode& node, TraceBuilder& builder) {
      builder_ = &builder;
      const Status done = Resize(node);
      if (done) return done;
      return Status(BadInput(fmt::format("node {} '{}': {}", first_.source_id(node.node),
                                         first_.name(node.node), done.error().message)));
    });
    if (!trace) return tl::unexpected<Error>(trace.error());
    resized_.trace = *std::move(trace);
    return std::move(resized_);
  }

 private:
  // Checks that both recordings have the same nodes.
  Status CheckNodes() const {
    for (size_t i = 0; i < first_.node_count(); ++i) {
      const NodeId node = NodeId::FromIndex(i);
      const bool same =
          first_.kind(node) == second_.kind(node) && first_.name(node) == second_.name(node) &&
          first_.text(first_.op_schema(node)) == second_.text(second_.op_schema(node)) &&
          first_.parent(node) == second_.parent(node);
      if (same) continue;
      return BadInput(
          fmt::format("node {} '{}' is '{}' in the second recording, expected recordings that "
                      "differ only in sizes",
                      first_.source_id(node), first_.name(node), second_.name(node)));
    }
    return {};
  }

  Status Resize(RewrittenNode& node) {
    changed_ = false;
    NodeRow& row = node.row;
    ETUDE_ASSIGN_OR_RETURN(row.inputs,
                           ListAt(first_.input_list(node.node), second_.input_list(node.node)));
    ETUDE_ASSIGN_OR_RETURN(row.outputs,
                           ListAt(first_.output_list(node.node), second_.output_list(node.node)));
    if (changed_) {
      ++resized_.changed;
      row.index_values = StringId::None();
    }
    if (row.start) row.start = times_.begin(node.node);
    if (row.duration) row.duration = times_.duration(node.node);
    row.exclusive.reset();
    const Comm* other = second_.comm(node.node);
    if (!node.comm || other == nullptr) return {};
    return CommAt(*node.comm, *other);
  }

  Status CommAt(Comm& comm, const Comm& other) {
    for (const auto count : {&Comm::in_elements, &Comm::out_elements}) {
      if (!(comm.*count) || !(other.*count)) continue;
      ETUDE_ASSIGN_OR_RETURN(comm.*count, At("elements", *(comm.*count), *(other.*count)));
    }
    if (comm.bytes && other.bytes) {
      ETUDE_ASSIGN_OR_RETURN(comm.bytes->count, At("bytes", comm.bytes->count, other.bytes->count));
    }
    ETUDE_ASSIGN_OR_RETURN(comm.in_split,
                           IntsAt("sizes of a split", comm.in_split, other.in_split));
    ETUDE_ASSIGN_OR_RETURN(comm.out_split,
                           IntsAt("sizes of a split", comm.out_split, other.out_split));
    return {};
  }

  Result<int64_t> At(std::string_view what, int64_t here, int64_t there) {
    const auto count = CountAt(sizes_, here, there);
    if (count) {
      changed_ = changed_ || *count != here;
      return *count;
    }
    return BadInput(fmt::format("{}: {} for size {} and {} for {} give no whole number for {}",
                                what, here, sizes_.first, there, sizes_.second, sizes_.wanted));
  }

  Result<IntListId> IntsAt(std::string_view what, IntListId here, IntListId there) {
    if (!here || !there) return here;
    const auto a = first_.ints(here);
    const auto b = second_.ints(there);
    if (a.size() != b.size())
      return BadInput(fmt::format("{}: found different counts in the two recordings", what));
    std::vector<int64_t> ints;
    for (size_t i = 0; i < a.size(); ++i) {
      ETUDE_ASSIGN_OR_RETURN(ints.emplace_back(), At(what, a[i], b[i]));
    }
    return builder_->InternInts(ints);
  }

  Result<ValueListId> ListAt(ValueListId here, ValueListId there) {
    if (!here) return here;
    const auto a = first_.values(here);
    const auto b = second_.values(there);
    if (!there || a.size() != b.size()) {
      return BadInput("found different numbers of arguments or results in the two recordings");
    }
    std::vector<Value> values(a.begin(), a.end());
    for (size_t i = 0; i < values.size(); ++i) {
      ETUDE_ASSIGN_OR_RETURN(values[i].payload, PayloadAt(a[i], b[i]));
    }
    return builder_->InternValues(values);
  }

  Result<uint64_t> PayloadAt(const Value& here, const Value& there) {
    if (here.kind != there.kind)
      return BadInput("found different kinds of arguments in the two recordings");
    switch (here.kind) {
      case ValueKind::kInt: {
        ETUDE_ASSIGN_OR_RETURN(const int64_t count, At("a number", here.as_int(), there.as_int()));
        return static_cast<uint64_t>(count);
      }
      case ValueKind::kDouble:
        return std::bit_cast<uint64_t>(RealAt(here.as_double(), there.as_double()));
      case ValueKind::kList: {
        ETUDE_ASSIGN_OR_RETURN(const ValueListId list, ListAt(here.as_list(), there.as_list()));
        return list.value();
      }
      case ValueKind::kTensor: {
        ETUDE_ASSIGN_OR_RETURN(const TensorUse use, TensorAt(first_.tensor(here.as_tensor()),
                                                             second_.tensor(there.as_tensor())));
        return builder_->InternTensor(use).value();
      }
      default: return here.payload;
    }
  }

  double RealAt(double here, double there) {
    if (std::bit_cast<uint64_t>(here) == std::bit_cast<uint64_t>(there)) return here;
    if (const auto real = NumberAt(sizes_, here, there)) {
      changed_ = true;
      return *real;
    }
    ++resized_.kept;
    return here;
  }

  Result<TensorUse> TensorAt(const TensorUse& here, const TensorUse& there) {
    if (first_.text(here.type) != second_.text(there.type)) {
      return BadInput(
          fmt::format("found a tensor of type {} in the first and {} in the second recording",
                      first_.text(here.type), second_.text(there.type)));
    }
    TensorUse use = here;
    ETUDE_ASSIGN_OR_RETURN(use.shape, IntsAt("a size", here.shape, there.shape));
    // An undefined tensor has no sizes and no elements.
    const bool is_counted = use.shape && !IsUndefinedType(first_.text(here.type));
    if (is_counted) {
      ETUDE_ASSIGN_OR_RETURN(use.numel, Product(builder_->ints(use.shape)));
    } else {
      ETUDE_ASSIGN_OR_RETURN(use.numel, At("elements", here.numel, there.numel));
    }
    ETUDE_ASSIGN_OR_RETURN(use.strides, StridesAt(here, there, use.shape));
    ETUDE_ASSIGN_OR_RETURN(use.offset, At("a storage offset", here.offset, there.offset));
    if (here.storage_bytes >= 0) {
      use.storage_bytes = -1;
      if (there.storage_bytes >= 0) {
        const auto bytes = CountAt(sizes_, here.storage_bytes, there.storage_bytes);
        use.storage_bytes = bytes.value_or(-1);
      }
    }
    if (here.number_kind == ValueKind::kDouble && there.number_kind == ValueKind::kDouble) {
      use.number = std::bit_cast<uint64_t>(
          RealAt(std::bit_cast<double>(here.number), std::bit_cast<double>(there.number)));
    } else if (here.number_kind == ValueKind::kInt && there.number_kind == ValueKind::kInt) {
      ETUDE_ASSIGN_OR_RETURN(const int64_t number, At("a number", static_cast<int64_t>(here.number),
                                                      static_cast<int64_t>(there.number)));
      use.number = static_cast<uint64_t>(number);
    }
    return use;
  }

  static Result<int64_t> Product(std::span<const int64_t> sizes) {
    int64_t product = 1;
    for (const int64_t size : sizes) {
      if (__builtin_mul_overflow(product, size, &product)) {
        return BadInput("a tensor would have too many elements");
      }
    }
    return product;
  }

  // Contiguous elements keep their order; otherwise each stride follows its own rule, as does that
  // of a dimension of one element, which is arbitrary.
  Result<IntListId> StridesAt(const TensorUse& here, const TensorUse& there, IntListId shape) {
    if (!here.strides || !shape) return here.strides;
    const auto sizes = first_.ints(here.shape);
    const auto strides = first_.ints(here.strides);
    const auto wanted = builder_->ints(shape);
    if (strides.size() != sizes.size()) return here.strides;
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) {
      return strides[a] != strides[b] ? strides[a] < strides[b] : sizes[a] < sizes[b];
    });
    std::vector<int64_t> dense(sizes.size());
    int64_t recorded = 1;
    int64_t stride = 1;
    for (const size_t i : order) {
      if (sizes[i] != 1 && strides[i] != recorded) {
        return IntsAt("a stride", here.strides, there.strides);
      }
      dense[i] = stride;
      if (__builtin_mul_overflow(recorded, sizes[i], &recorded) ||
          __builtin_mul_overflow(stride, std::max<int64_t>(wanted[i], 1), &stride)) {
        return BadInput("a tensor would have too many elements");
      }
    }
    const auto others = second_.ints(there.strides);
    for (size_t i = 0; i < sizes.size() && others.size() == sizes.size(); ++i) {
      if (sizes[i] != 1 || wanted[i] != 1) continue;
      dense[i] = CountAt(sizes_, strides[i], others[i]).value_or(dense[i]);
    }
    return builder_->InternInts(dense);
  }

  const Trace& first_;
  const Trace& second_;
  const Resizing sizes_;
  const TimesAt times_;
  TraceBuilder* builder_ = nullptr;
  Resized resized_;
  bool changed_ = false;  // of the current node
};

}  // namespace

std::optional<int64_t> CountAt(const Resizing& sizes, int64_t first, int64_t second) {
  if (first == second) return first;
  const Wide from = sizes.first;
  const Wide to = sizes.second;
  const Wide wanted = sizes.wanted;
  std::optional<int64_t> count;
  if (first * to == second * from) {
    count = Whole(first * wanted, from);
  } else if (first * to * to == second * from * from) {
    count = Whole(first * wanted * wanted, from * from);
  } else if (const auto more = Whole((Wide{second} - first) * (wanted - from), to - from)) {
    count = Whole(Wide{first} + *more, 1);
  }
  if (count && *count < 0 && first >= 0 && second >= 0) return std::nullopt;
  return count;
}

std::optional<double> NumberAt(const Resizing& sizes, double first, double second) {
  const auto from = static_cast<double>(sizes.first);
  const auto to = static_cast<double>(sizes.second);
  const auto wanted = static_cast<double>(sizes.wanted);
  if (first == second) return first;
  if (Near(first * to, second * from)) return first * wanted / from;
  if (Near(first * from, second * to)) return first * from / wanted;
  return std::nullopt;
}

Result<Resized> ResizeTrace(const Trace& first, const Trace& second, const Resizing& sizes,
                            const Limits& limits) {
  // Nodes are looked up by number in both; times require equal numbers, too.
  if (first.node_count() != second.node_count()) {
    return BadInput(
        fmt::format("found {} nodes in the first recording and {} in the second, expected "
                    "recordings that differ only in sizes",
                    first.node_count(), second.node_count()));
  }
  return Resizer(first, second, sizes).Run(limits);
}

}  // namespace etude
