#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/trace_reader.h"
#include "src/trace/trace.h"

// For fuzz targets only.
namespace etude::fuzz {

inline std::string_view Bytes(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Returns a context with limits that small inputs can reach.
inline RunContext SmallLimits() {
  RunContext context;
  context.limits.depth = 64;
  context.limits.element_bytes = size_t{1} << 20;
  context.limits.total_bytes = uint64_t{16} << 20;
  context.limits.ratio_grace_bytes = uint64_t{1} << 20;
  return context;
}

// Pushes `input` through a reader made by `make`, in chunks whose size depends on its first byte.
template <typename Make>
Result<Trace> ReadWith(Make make, std::string_view input) {
  const RunContext context = SmallLimits();
  const std::unique_ptr<TraceReader> reader = make("fuzz", {}, context);
  const size_t chunk = input.empty() ? 1 : 1 + size_t{static_cast<uint8_t>(input[0])} * 7;
  for (size_t at = 0; at < input.size(); at += chunk) {
    ETUDE_RETURN_IF_ERROR(reader->Push(input.substr(at, chunk)));
  }
  return reader->Finish(/*cut=*/false);
}

// Splits an input into two files, before and after its first line of "===".
inline std::pair<std::string_view, std::string_view> TwoFiles(std::string_view input) {
  constexpr std::string_view kBetween = "\n===\n";
  const size_t end = input.find(kBetween);
  if (end == std::string_view::npos) return {input, {}};
  return {input.substr(0, end), input.substr(end + kBetween.size())};
}

}  // namespace etude::fuzz
