#include "src/replay/device_map.h"

#include <algorithm>
#include <array>

namespace etude {
namespace {

using Source = Equivalent::Source;
using SourceKind = Source::Kind;

constexpr Source Arg(int argument) { return {SourceKind::kArgument, argument}; }
constexpr Source kNone = {SourceKind::kNone, 0};
constexpr Source kFalse = {SourceKind::kFalse, 0};
constexpr Source kTrue = {SourceKind::kTrue, 0};
constexpr Source kZeros = {SourceKind::kZeros, 0};
constexpr Source kAllTrue = {SourceKind::kAllTrue, 0};

// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
// from (self, weight, padding, stride, dilation, groups, …)
constexpr std::array kConvolution = {Arg(0), Arg(1), kNone,  Arg(3), Arg(2),
                                     Arg(4), kFalse, kZeros, Arg(5)};
// from (self, weight, padding, output_padding, stride, dilation, groups, …)
constexpr std::array kTransposed = {Arg(0), Arg(1), kNone,  Arg(4), Arg(2),
                                    Arg(5), kTrue,  Arg(3), Arg(6)};
// native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean,
// save_invstd, train, eps, output_mask) from (input, grad_output, weight, running_mean,
// running_var, save_mean, save_var, epsilon, reserve)
constexpr std::array kBatchNormBackward = {Arg(1), Arg(0), Arg(2), Arg(3), Arg(4),
                                           Arg(5), Arg(6), kTrue,  Arg(7), kAllTrue};
// clone(self, memory_format) from (self, device)
constexpr std::array kClone = {Arg(0), kNone};
// alias(self) from (input): the lazily waiting wrapper belongs to Python
constexpr std::array kAlias = {Arg(0)};

constexpr auto kEquivalents = std::to_array<Equivalent>({
    {"aten::cudnn_convolution", "aten::convolution", kConvolution},
    {"aten::miopen_convolution", "aten::convolution", kConvolution},
    {"aten::cudnn_convolution_transpose", "aten::convolution", kTransposed},
    {"aten::cudnn_batch_norm_backward", "aten::native_batch_norm_backward", kBatchNormBackward},
    {"aten::miopen_batch_norm_backward", "aten::native_batch_norm_backward", kBatchNormBackward},
    {"aten::_pin_memory", "aten::clone", kClone, /*fails_on_cpu=*/true},
    {"aten::pin_memory", "aten::clone", kClone, /*fails_on_cpu=*/true},
    {"_c10d_functional::_wrap_tensor_autograd", "aten::alias", kAlias},
});

struct Refusal {
  std::string_view name;  // a namespace with "::", or an operator's base name
  std::string_view reason;
};

constexpr auto kRefusals = std::to_array<Refusal>({
    {"symm_mem::", "not replayed: requires memory shared between devices"},
    {"aten::record_stream", "not replayed: only a hint for the allocator"},
    {"aten::from_file", kTouchesFiles},
    {"aten::set_data", "not a dispatcher operator"},
    {"prim::", "not an operator of a model"},
    {"profiler::", "not an operator of a model"},
    {"debugprims::", "not an operator of a model"},
    {"inductor::", "internal to a compiler"},
    {"streams::", "internal to a compiler"},
    {"onnx::", "not an operator of a model"},
    {"rngprims::", "internal to a compiler"},
    {"_test::", "not an operator of a model"},
});

// Names of text arguments that are a file, folder or address, in schemas of PyTorch, torchvision,
// torchaudio and torchtext.
constexpr auto kFileArguments = std::to_array<std::string_view>({
    "dest",
    "dir",
    "directory",
    "dst",
    "file",
    "file_name",
    "file_path",
    "filename",
    "filepath",
    "folder",
    "output_path",
    "path",
    "root",
    "src",
    "uri",
    "url",
});

}  // namespace

bool IsFileArgument(std::string_view argument) {
  return std::ranges::binary_search(kFileArguments, argument);
}

std::string DeviceMap::Map(std::string_view recorded) const {
  if (recorded.empty()) return target_;
  if (recorded.starts_with("cpu") && step_uses_device_) return "cpu";
  if (recorded.starts_with("meta")) return "meta";
  return target_;
}

const Equivalent* FindEquivalent(std::string_view op) {
  const auto it = std::ranges::find(kEquivalents, op, &Equivalent::op);
  return it == kEquivalents.end() ? nullptr : &*it;
}

std::string_view ReasonNotToRun(std::string_view op) {
  const std::string_view base = op.substr(0, op.find('.'));
  for (const Refusal& refusal : kRefusals) {
    const bool matches =
        refusal.name.ends_with("::") ? base.starts_with(refusal.name) : base == refusal.name;
    if (matches) return refusal.reason;
  }
  return {};
}

}  // namespace etude
