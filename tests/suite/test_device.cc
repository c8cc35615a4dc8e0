// A device as users bring their own: "loopback", whose work the CPU's operators do. As with a real
// one, nobody but they may touch its memory: its pages are there twice, under the addresses that
// PyTorch has, where they cannot be read, and others. It has no generator of random numbers.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
constexpr c10::DispatchKeySet kKeys{c10::DispatchKey::PrivateUse1};
const c10::Device kDevice(kType, 0);

// Address space for all memory of the device, of which little is ever used. Blocks have sizes that
// are powers of two, and what was freed is given out again.
class Pages {
 public:
  static Pages& All() {
    static Pages* const pages = new Pages;  // outlives every tensor
    return *pages;
  }

  void* Take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto kind = static_cast<size_t>(std::bit_width(std::max<size_t>(bytes, 64) - 1));
    if (!free_[kind].empty()) {
      void* block = free_[kind].back();
      free_[kind].pop_back();
      return block;
    }
    const size_t size = size_t{1} << kind;
    if (size > kSpace - used_) std::abort();
    used_ += size;
    kinds_.push_back({theirs_ + used_ - size, kind});
    return theirs_ + used_ - size;
  }
  void Give(void* block) {
    const std::lock_guard lock(mutex_);
    const auto* begin = static_cast<std::byte*>(block);
    // Blocks are in the order of their addresses.
    const auto found = std::ranges::lower_bound(kinds_, begin, {}, &Block::begin);
    free_[found->kind].push_back(block);
  }
  // Where operators find it.
  void* Here(void* theirs) const {
    return theirs == nullptr ? nullptr : ours_ + (static_cast<std::byte*>(theirs) - theirs_);
  }

 private:
  static constexpr size_t kSpace = size_t{1} << 36;
  struct Block {
    const std::byte* begin = nullptr;
    size_t kind = 0;
  };

  Pages() {
    const int file = memfd_create("loopback", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, kSpace) != 0) std::abort();
    const auto map = [file](int may) {
      void* at = mmap(nullptr, kSpace, may, MAP_SHARED | MAP_NORESERVE, file, 0);
      if (at == MAP_FAILED) std::abort();
      return static_cast<std::byte*>(at);
    };
    theirs_ = map(PROT_NONE);
    ours_ = map(PROT_READ | PROT_WRITE);
    close(file);
  }

  std::mutex mutex_;
  std::byte* theirs_ = nullptr;
  std::byte* ours_ = nullptr;
  size_t used_ = 0;
  std::vector<Block> kinds_;
  std::array<std::vector<void*>, 64> free_;
};

struct Memory final : c10::Allocator {
  static void Free(void* data) {
    if (data != nullptr) Pages::All().Give(data);
  }
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes == 0 ? nullptr : Pages::All().Take(bytes);
    return {data, data, &Free, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    const Pages& pages = Pages::All();
    default_copy_data(pages.Here(to), pages.Here(const_cast<void*>(from)), bytes);
  }
};

// One device, one stream, on which nothing is ever under way.
struct Guard final : c10::impl::NoOpDeviceGuardImpl<kType> {
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  c10::Stream getStream(c10::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, kDevice);
  }
  c10::Stream exchangeStream(c10::Stream) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, kDevice);
  }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(c10::DeviceIndex) const override {}
};

// What autograd asks of an accelerator.
struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
};

Memory memory;
Hooks hooks;
const bool registered = [] {
  c10::register_privateuse1_backend("loopback");
  c10::SetAllocator(kType, &memory);
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

at::Tensor Empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &memory, kKeys, type.value_or(at::kFloat), format);
}
at::Tensor EmptyStrided(at::IntArrayRef sizes, at::IntArrayRef strides,
                        std::optional<at::ScalarType> type, std::optional<at::Layout>,
                        std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(sizes, strides, &memory, kKeys,
                                           type.value_or(at::kFloat));
}

// The same memory as the CPU's.
at::Tensor Host(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_cpu()) return tensor;
  return at::from_blob(Pages::All().Here(tensor.mutable_data_ptr()), tensor.sizes(),
                       tensor.strides(), tensor.options().device(at::kCPU));
}
at::Tensor There(const at::Tensor& host) { return host.defined() ? host.to(kDevice) : host; }

at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to, bool) {
  Host(to).copy_(Host(from));
  return to;
}
at::Tensor CopyFromAndResize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return CopyFrom(from, to, false);
}

at::Tensor Convolution(const at::Tensor& x, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  return There(at::convolution(Host(x), Host(weight), Host(bias.value_or(at::Tensor())), stride,
                               padding, dilation, transposed, output_padding, groups));
}
std::tuple<at::Tensor, at::Tensor, at::Tensor> ConvolutionBackward(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  const auto [of_x, of_weight, of_bias] = at::convolution_backward(
      Host(gradient), Host(x), Host(weight), at::IntArrayRef(weight.size(0)), stride, padding,
      dilation, transposed, output_padding, groups, wanted);
  return {There(of_x), There(of_weight), There(of_bias)};
}

void OnTheCpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &Empty);
  library.impl("empty_strided", &EmptyStrided);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("resize_", &at::native::resize_);
  library.impl("_copy_from", &CopyFrom);
  library.impl("_copy_from_and_resize", &CopyFromAndResize);
  library.impl("convolution_overrideable", &Convolution);
  library.impl("convolution_backward_overrideable", &ConvolutionBackward);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&OnTheCpu>());
}
