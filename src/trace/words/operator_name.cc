#include "src/trace/words/operator_name.h"

#include <algorithm>
#include <array>

#include "src/trace/words/comm_backend.h"
#include "src/trace/words/enums.h"

namespace etude {
namespace {

constexpr auto kNamespacesOfPyTorch = std::to_array<std::string_view>({
    "aten",
    "c10d",
    "_c10d_functional",
    "prims",
    "rngprims",
    "fsdp",
    "inductor",
    "inductor_prims",
    "fsdp",
    "sparse",
    "quantized",
    "_quantized",
    "quantization",
    "mkl",
    "mkldnn",
    "mkldnn_prepacked",
    "onednn",
});

// Returns the values of a list "(Tensor a, *, ScalarType? b=6)" that begins at `open`, and sets
// `open` to its end; none if the list does not end.
std::vector<DeclaredValue> DeclaredIn(std::string_view schema, size_t& open) {
  std::vector<DeclaredValue> all;
  size_t begin = open + 1;
  size_t depth = 1;  // "Tensor(a!)" and "int[2]=[0, 0]" have brackets of their own
  for (size_t i = begin; i < schema.size(); ++i) {
    const char c = schema[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth != 0 && (depth != 1 || c != ',')) continue;
    std::string_view text = schema.substr(begin, i - begin);
    while (text.starts_with(' ')) text.remove_prefix(1);
    // A lone "*" is not an argument: the arguments after it are given by name.
    if (!text.empty() && text != "*") {
      text = text.substr(0, text.find('='));
      // A type may have blanks in its brackets: "Tensor(a -> *) self".
      const size_t end = text.find_last_of(" )]");
      const bool named = end != std::string_view::npos && text[end] == ' ';
      all.push_back(named ? DeclaredValue{text.substr(0, end), text.substr(end + 1)}
                          : DeclaredValue{text, {}});
    }
    begin = i + 1;
    if (depth != 0) continue;
    open = i;
    return all;
  }
  open = schema.size();
  return {};
}

}  // namespace

OperatorSignature SignatureOf(std::string_view schema) {
  OperatorSignature signature;
  size_t at = schema.find('(');
  if (at == std::string_view::npos) return signature;
  signature.arguments = DeclaredIn(schema, at);
  constexpr std::string_view kSeveralResults = " -> (";
  at = schema.find(kSeveralResults, at);
  if (at == std::string_view::npos) return signature;
  at += kSeveralResults.size() - 1;
  signature.results = DeclaredIn(schema, at);
  return signature;
}

std::optional<size_t> ArgumentPosition(std::string_view schema, std::string_view name) {
  const auto arguments = SignatureOf(schema).arguments;
  const auto found = std::ranges::find(arguments, name, &DeclaredValue::name);
  if (found == arguments.end()) return std::nullopt;
  return static_cast<size_t>(found - arguments.begin());
}

std::string_view CommOfLabel(std::string_view name) {
  const CommBackend* backend = BackendOfLabel(name);
  if (backend == nullptr) return {};
  const std::string_view rest = name.substr(backend->label.size());
  return CollectiveFromName(rest) || PointToPointFromName(rest) ? rest : std::string_view();
}

bool IsCommLabel(std::string_view name) { return BackendOfLabel(name) != nullptr; }

bool IsCoalescedLabel(std::string_view name) {
  constexpr std::string_view kCoalesced = "coalesced";
  return IsCommLabel(name) && name.substr(name.find(':') + 1) == kCoalesced;
}

bool IsOfPyTorch(std::string_view name) {
  const size_t colons = name.find("::");
  return colons != std::string_view::npos &&
         std::ranges::count(kNamespacesOfPyTorch, name.substr(0, colons)) != 0;
}

}  // namespace etude
