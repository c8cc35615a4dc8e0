#include "src/suite/checkpoint.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/base/text/bounded_json.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLargestHeader = size_t{100} << 20;  // same as the format's own readers
constexpr std::string_view kFacts = "__metadata__";

struct ElementType {
  at::ScalarType type;
  std::string_view name;
};
constexpr std::array kElementTypes = {
    ElementType{at::kFloat, "F32"}, ElementType{at::kDouble, "F64"},
    ElementType{at::kHalf, "F16"},  ElementType{at::kBFloat16, "BF16"},
    ElementType{at::kLong, "I64"},  ElementType{at::kInt, "I32"},
    ElementType{at::kByte, "U8"},   ElementType{at::kBool, "BOOL"}};

std::optional<std::string_view> NameOf(at::ScalarType type) {
  for (const ElementType& row : kElementTypes) {
    if (row.type == type) return row.name;
  }
  return std::nullopt;
}

// Returns a contiguous copy on the CPU.
at::Tensor Flat(const at::Tensor& tensor) { return tensor.detach().cpu().contiguous(); }

tl::unexpected<Error> Wrong(const std::string& path, std::string_view what) {
  return BadInput(fmt::format("{}: {}, expected a checkpoint of this task", path, what));
}

// Finds a tensor's bytes in the data of a file, if the header matches `tensor`.
Result<size_t> FindBytes(const std::string& path, const Json& header, const std::string& name,
                         const at::Tensor& tensor, size_t data_bytes) {
  if (!header.contains(name)) return Wrong(path, fmt::format("no tensor '{}'", name));
  const Json& entry = header[name];
  const std::optional<std::string_view> type = NameOf(tensor.scalar_type());
  const Json shape(tensor.sizes().vec());
  if (!type || !entry.is_object() || entry.value("dtype", Json()) != *type ||
      entry.value("shape", Json()) != shape) {
    return Wrong(path, fmt::format("tensor '{}' is {}, not {} {}", name, entry.dump(),
                                   type.value_or("?"), shape.dump()));
  }
  const Json offsets = entry.value("data_offsets", Json());
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return Wrong(path, fmt::format("tensor '{}' has no data_offsets", name));
  }
  const auto begin = offsets[0].get<uint64_t>();
  const auto end = offsets[1].get<uint64_t>();
  if (begin > end || end > data_bytes || end - begin != tensor.nbytes()) {
    return Wrong(path, fmt::format("tensor '{}' lies at {} to {} of {} bytes", name, begin, end,
                                   data_bytes));
  }
  return begin;
}

}  // namespace

Status WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint) {
  Json header = Json::object();
  if (!checkpoint.facts.empty()) header[std::string(kFacts)] = checkpoint.facts;
  size_t offset = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const std::optional<std::string_view> type = NameOf(tensor.scalar_type());
    if (!type) {
      return MakeError(ErrorCode::kInternal, fmt::format("tensor '{}': no element type of "
                                                         "safetensors",
                                                         name));
    }
    header[name] = {{"dtype", *type},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, offset + tensor.nbytes()}}};
    offset += tensor.nbytes();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();  // little-endian, like all machines of PyTorch

  ETUDE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, Existing::kReplace));
  ETUDE_RETURN_IF_ERROR(
      file.Write(std::string_view(reinterpret_cast<const char*>(&length), sizeof length)));
  ETUDE_RETURN_IF_ERROR(file.Write(text));
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const at::Tensor flat = Flat(tensor);
    ETUDE_RETURN_IF_ERROR(file.Write(
        std::string_view(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes())));
  }
  return file.Commit();
}

Result<std::map<std::string, std::string>> ReadCheckpoint(
    const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& into,
    const RunContext& context) {
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  ETUDE_ASSIGN_OR_RETURN(const std::string bytes,
                         ReadWholeFile(path, context.limits, context.limits.total_bytes, ""));
  uint64_t length = 0;
  if (bytes.size() < sizeof length) return Wrong(path, fmt::format("{} bytes", bytes.size()));
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kLargestHeader || length > bytes.size() - sizeof length) {
    return Wrong(path, fmt::format("a header of {} bytes in a file of {}", length, bytes.size()));
  }
  const std::string_view text = std::string_view(bytes).substr(sizeof length, length);
  const std::string_view data = std::string_view(bytes).substr(sizeof length + length);
  const Json header = ParseBounded<Json>(text, context.limits.depth);
  if (!header.is_object()) return Wrong(path, "a header that is not a JSON object");

  std::vector<size_t> offsets;
  for (const auto& [name, tensor] : into) {
    ETUDE_ASSIGN_OR_RETURN(offsets.emplace_back(),
                           FindBytes(path, header, name, tensor, data.size()));
  }
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < into.size(); ++i) {
    at::Tensor flat = Flat(into[i].second).clone();
    std::memcpy(flat.mutable_data_ptr(), data.data() + offsets[i], flat.nbytes());
    at::Tensor(into[i].second).copy_(flat);
  }
  std::map<std::string, std::string> facts;
  const Json written = header.value(std::string(kFacts), Json::object());
  if (!written.is_object()) return Wrong(path, "metadata that are not a JSON object");
  for (const auto& [name, value] : written.items()) {
    if (value.is_string()) facts[name] = value.get<std::string>();
  }
  return facts;
}

}  // namespace etude::suite
