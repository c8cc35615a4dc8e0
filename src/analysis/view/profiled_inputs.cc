#include "src/analysis/view/profiled_inputs.h"

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "src/base/text/bounded_json.h"
#include "src/trace/words/enums.h"

namespace etude {
namespace {

using Json = nlohmann::json;

// Returns nullopt if it is not a list of sizes.
std::optional<int64_t> ElementsIn(const Json& sizes) {
  if (!sizes.is_array()) return std::nullopt;
  int64_t elements = 1;
  for (const Json& size : sizes) {
    if (!size.is_number_integer() || size < 0) return std::nullopt;
    if (__builtin_mul_overflow(elements, size.get<int64_t>(), &elements)) return std::nullopt;
  }
  return elements;
}

struct Tensors {
  bool any = false;
  std::optional<Bytes> bytes;
};

// Adds the tensor, or each tensor of a list, of an input.
void AddInput(const Json& sizes, std::string_view type, Tensors& tensors) {
  constexpr std::string_view kList = "TensorList";
  const DType dtype = DTypeFromText(type);
  if (type != kList && dtype == DType::kUnknown) return;  // a number, or nothing
  tensors.any = true;
  const auto each = ElementBytes(dtype);
  const auto elements = type == kList ? std::nullopt : ElementsIn(sizes);
  int64_t bytes = 0;
  if (!each || !elements || __builtin_mul_overflow(*elements, *each, &bytes)) return;
  const int64_t before = tensors.bytes.value_or(Bytes{}).count;
  if (!__builtin_add_overflow(bytes, before, &bytes)) tensors.bytes = Bytes{bytes};
}

Tensors TensorsOf(std::string_view dims, std::string_view types) {
  Tensors tensors;
  const auto sizes = ParseBounded<Json>(dims);
  const auto names = ParseBounded<Json>(types);
  if (!sizes.is_array() || !names.is_array() || sizes.size() != names.size()) return tensors;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (names[i].is_string()) {
      AddInput(sizes[i], names[i].get_ref<const std::string&>(), tensors);
    }
  }
  return tensors;
}

}  // namespace

ProfiledInputs::ProfiledInputs(const Trace& trace)
    : trace_(trace),
      dims_key_(trace.strings().Find("Input Dims")),
      types_key_(trace.strings().Find("Input type")) {}

std::optional<ProfiledInputs::Inputs> ProfiledInputs::Of(NodeId node) {
  if (!dims_key_ || !types_key_) return std::nullopt;
  StringId dims;
  StringId types;
  for (const Extra& extra : trace_.extras(node)) {
    if (extra.form != Extra::Form::kJson) continue;
    if (extra.key == dims_key_) dims = extra.text;
    if (extra.key == types_key_) types = extra.text;
  }
  if (!dims || !types) return std::nullopt;
  const uint64_t key = uint64_t{dims.value()} << 32 | types.value();
  const auto [known, is_new] = known_.emplace(key, Inputs{});
  if (is_new) {
    const Tensors tensors = TensorsOf(trace_.text(dims), trace_.text(types));
    known->second = {.shapes = tensors.any ? known_.size() : 0, .bytes = tensors.bytes};
  }
  return known->second;
}

}  // namespace etude
