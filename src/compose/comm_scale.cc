#include "src/compose/comm_scale.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/run/step/tensor_shape.h"

namespace etude {
namespace {

// Returns `count` times `factor` if that is a whole number above 0.
std::optional<int64_t> Times(int64_t count, double factor) {
  constexpr double kMost = 9007199254740992.0;  // 2^53: whole numbers are exact up to here
  constexpr double kNear = 1e-9;                // tolerance, because 0.1 is not exact
  const double product = static_cast<double>(count) * factor;
  const double whole = std::round(product);
  if (whole < 1 || product > kMost || std::abs(product - whole) > kNear * product) {
    return std::nullopt;
  }
  return static_cast<int64_t>(whole);
}

tl::unexpected<Error> NotWhole(std::string_view what, int64_t count, double factor) {
  return BadInput(fmt::format("{} {} times {} is not a whole number", what, count, factor));
}

Status CheckValues(const Trace& trace, std::span<const Value> values, double factor) {
  for (const Value& value : values) {
    if (value.kind == ValueKind::kTensor) {
      ETUDE_RETURN_IF_ERROR(ScaleTensor(trace, trace.tensor(value.as_tensor()), factor));
    }
    if (value.kind != ValueKind::kList) continue;
    const auto elements = trace.values(value.as_list());
    if (!elements.empty() && elements.front().kind == ValueKind::kInt) {
      return BadInput("cannot scale a list of integers, which may be split sizes");
    }
    ETUDE_RETURN_IF_ERROR(CheckValues(trace, elements, factor));
  }
  return {};
}

}  // namespace

Result<std::optional<ScaledTensor>> ScaleTensor(const Trace& trace, const TensorUse& use,
                                                double factor) {
  if (IsUndefined(trace, use) || use.numel == 0) return std::nullopt;
  const std::optional<TensorShape> shape = ShapeOf(trace, use);
  if (!shape || !use.shape) return BadInput("the sizes of one of its tensors are unknown");
  const std::vector<int64_t>& sizes = shape->sizes;
  if (sizes.empty()) return BadInput("one of its tensors is a scalar");
  int64_t numel = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] > 1 && shape->strides[i] != numel) {
      return BadInput(fmt::format("one of its tensors is not contiguous: sizes {}, strides {}",
                                  sizes, shape->strides));
    }
    numel *= sizes[i];
  }
  ScaledTensor scaled{.sizes = sizes};
  const auto first = Times(sizes[0], factor);
  if (!first) return NotWhole("the first size of one of its tensors,", sizes[0], factor);
  scaled.sizes[0] = *first;
  if (__builtin_mul_overflow(numel / sizes[0], *first, &scaled.numel)) {
    return BadInput("one of its tensors would have too many elements");
  }
  if (use.offset != 0) {
    const auto offset = Times(use.offset, factor);
    if (!offset) return NotWhole("the storage offset of one of its tensors,", use.offset, factor);
    scaled.offset = *offset;
  }
  return scaled;
}

Result<Comm> ScaleComm(const Trace& trace, const Comm& comm, double factor) {
  if (!trace.ints(comm.in_split).empty() || !trace.ints(comm.out_split).empty()) {
    return BadInput("cannot scale a communication with split sizes");
  }
  Comm scaled = comm;
  for (auto* elements : {&scaled.in_elements, &scaled.out_elements}) {
    if (!*elements || **elements == 0) continue;
    const auto count = Times(**elements, factor);
    if (!count) return NotWhole("its number of elements,", **elements, factor);
    *elements = count;
  }
  if (scaled.bytes && scaled.bytes->count > 0) {
    const auto bytes = Times(scaled.bytes->count, factor);
    if (!bytes) return NotWhole("its number of bytes,", scaled.bytes->count, factor);
    scaled.bytes = Bytes{*bytes};
  }
  return scaled;
}

Status CheckScales(const Trace& trace, NodeId node, double factor) {
  const auto check = [&]() -> Status {
    ETUDE_RETURN_IF_ERROR(CheckValues(trace, trace.inputs(node), factor));
    ETUDE_RETURN_IF_ERROR(CheckValues(trace, trace.outputs(node), factor));
    if (const Comm* comm = trace.comm(node)) {
      ETUDE_RETURN_IF_ERROR(ScaleComm(trace, *comm, factor));
    }
    return {};
  };
  const Status checked = check();
  if (checked) return {};
  return BadInput(fmt::format("node {} '{}': {}", trace.source_id(node), trace.name(node),
                              checked.error().message));
}

}  // namespace etude
