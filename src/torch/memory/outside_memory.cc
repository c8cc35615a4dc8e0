#include "src/torch/memory/outside_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/TensorOptions.h>

#include "src/replay/values/fill_rule.h"
#include "src/replay/values/random_fill.h"
#include "src/run/step/tensor_shape.h"
#include "src/torch/error_text.h"

namespace etude {
namespace {

// Allocates `bytes` on the device, at least one so that the memory has an address.
Result<c10::Storage> MakeStorage(int64_t bytes, const std::string& device) {
  try {
    const at::Tensor raw = at::empty({std::max<int64_t>(bytes, 0)},
                                     c10::TensorOptions().dtype(c10::kByte).device(device));
    return raw.storage();
  } catch (const std::exception& error) {
    return Unavailable("memory of " + std::to_string(bytes) + " bytes on " + device + ": " +
                       FirstLine(error.what()));
  }
}

// Allocates host memory, pinned if a device supports it.
Result<c10::Storage> MakePinnedStorage(int64_t bytes) {
  try {
    const at::Tensor raw = at::empty({std::max<int64_t>(bytes, 0)},
                                     c10::TensorOptions().dtype(c10::kByte).pinned_memory(true));
    return raw.storage();
  } catch (const std::exception&) {
    return MakeStorage(bytes, "cpu");
  }
}

// Makes an empty tensor on `storage`, bypassing the dispatcher. Quantized types become their
// integer type, because scales and zero points are not recorded.
at::Tensor TensorOn(const c10::Storage& storage, c10::ScalarType recorded) {
  const c10::ScalarType type = c10::toUnderlying(recorded);
  return at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage),
      c10::DispatchKeySet(c10::computeDispatchKey(type, std::nullopt, storage.device())),
      c10::scalarTypeToTypeMeta(type));
}

// Returns the whole storage as a one-dimensional tensor.
at::Tensor WholeOf(const c10::Storage& storage, c10::ScalarType type) {
  at::Tensor whole = TensorOn(storage, type);
  const size_t count = storage.nbytes() / c10::elementSize(type);
  whole.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<int64_t>(count)});
  return whole;
}
at::Tensor BytesOf(const c10::Storage& storage) { return WholeOf(storage, c10::kByte); }

constexpr uint64_t kPrime = 0x9E3779B185EBCA87ULL;

// Returns a checksum of a device's memory without copying it: sums of its 64-bit words, weighted
// with odd numbers by position, piece by piece. Covers whole words only; throws the device's
// errors.
uint64_t WordsChecksum(const c10::Storage& storage) {
  constexpr int64_t kPiece = 1 << 22;
  const at::Tensor words = WholeOf(storage, c10::kLong);
  const int64_t count = words.numel();
  const at::Tensor odd = at::arange(1, 2 * std::min(kPiece, count) + 1, 2, words.options());
  uint64_t sum = 0;
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t length = std::min(kPiece, count - begin);
    const at::Tensor piece = words.narrow(0, begin, length) * odd.narrow(0, 0, length);
    sum = (std::rotl(sum, 29) ^ static_cast<uint64_t>(piece.sum().item<int64_t>())) * kPrime;
  }
  return sum;
}

// Returns a checksum of the content: four interleaved multiplicative hashes, for memory speed.
Result<uint64_t> Checksum(const c10::Storage& storage) {
  if (storage.device().is_meta()) return 0;  // has none
  try {
    constexpr auto kWord = static_cast<int64_t>(sizeof(int64_t));
    at::Tensor bytes = BytesOf(storage);
    uint64_t on_device = 0;
    if (!storage.device().is_cpu()) {
      const int64_t whole = bytes.numel() / kWord * kWord;
      if (whole > 0) on_device = WordsChecksum(storage);
      bytes = bytes.narrow(0, whole, bytes.numel() - whole).cpu();
    }
    const auto* data = static_cast<const uint8_t*>(bytes.const_data_ptr());
    const auto size = static_cast<size_t>(bytes.numel());
    uint64_t lanes[4] = {1 ^ on_device, 2, 3, 4};
    size_t i = 0;
    for (; i + sizeof lanes <= size; i += sizeof lanes) {
      uint64_t words[4];
      std::memcpy(words, data + i, sizeof words);
      for (int k = 0; k < 4; ++k) lanes[k] = (std::rotl(lanes[k], 29) ^ words[k]) * kPrime;
    }
    for (; i < size; ++i) lanes[0] = (std::rotl(lanes[0], 29) ^ data[i]) * kPrime;
    for (int k = 1; k < 4; ++k) lanes[0] = (std::rotl(lanes[0], 29) ^ lanes[k]) * kPrime;
    return lanes[0];
  } catch (const std::exception& error) {
    return Unavailable("reading memory: " + FirstLine(error.what()));
  }
}

// Fills `tensor`, which must be contiguous and on the CPU.
void FillTensor(const at::Tensor& tensor, const MemoryFill& fill,
                const std::vector<int64_t>* recorded, uint64_t seed) {
  const auto count = static_cast<size_t>(tensor.numel());
  if (count == 0) return;
  const c10::ScalarType type = tensor.scalar_type();
  const FilledElement element = FilledElementOf(type);
  if (element == FilledElement::kBool) {
    FillBools({static_cast<uint8_t*>(tensor.data_ptr()), count}, fill, seed);
    return;
  }
  if (fill.kind == MemoryFill::Kind::kBytes) {
    FillBytes({static_cast<uint8_t*>(tensor.data_ptr()), count}, seed);
    return;
  }
  // Values are made in one type and converted to the tensor's.
  const bool is_float = element == FilledElement::kFloat;
  const c10::ScalarType made = is_float ? c10::kFloat : c10::kLong;
  const at::Tensor numbers =
      type == made ? tensor : at::empty({tensor.numel()}, c10::TensorOptions().dtype(made));
  if (is_float) {
    FillFloats({static_cast<float*>(numbers.data_ptr()), count}, fill, seed);
  } else {
    FillIntegers({static_cast<int64_t*>(numbers.data_ptr()), count}, fill, recorded, seed);
  }
  if (type != made) tensor.copy_(numbers);
}

// Fills a tensor on a device. Values are made on the host; floats up to the repeated block.
void FillOnDevice(const at::Tensor& tensor, const MemoryFill& fill,
                  const std::vector<int64_t>* recorded, uint64_t seed) {
  const int64_t count = tensor.numel();
  const bool repeats = FilledElementOf(tensor.scalar_type()) == FilledElement::kFloat;
  const int64_t made = repeats ? std::min(count, static_cast<int64_t>(kRepeatedFloats)) : count;
  const at::Tensor host = at::empty({made}, c10::TensorOptions().dtype(tensor.scalar_type()));
  FillTensor(host, fill, recorded, seed);
  tensor.narrow(0, 0, made).copy_(host);
  for (int64_t done = made; done < count;) {
    const int64_t more = std::min(done, count - done);
    tensor.narrow(0, done, more).copy_(tensor.narrow(0, 0, more));
    done += more;
  }
}

template <typename Test>
int CountTensorsWith(const at::Tensor& tensor, Test test) {
  if (!tensor.defined() || tensor.is_meta()) return 0;
  if (tensor.scalar_type() != c10::kFloat || tensor.numel() == 0) return 0;
  constexpr int64_t kSample = 65536;
  const int64_t stride = std::max<int64_t>(1, tensor.numel() / kSample);
  const int64_t count = (tensor.numel() - 1) / stride + 1;
  const at::Tensor sample = tensor.as_strided({count}, {stride}).cpu().contiguous();
  const auto* values = static_cast<const float*>(sample.const_data_ptr());
  return std::any_of(values, values + count, test) ? 1 : 0;
}

// Returns a Python number as a tensor with separate memory: addresses of such numbers are
// meaningless, and they promote types like numbers.
at::Tensor MakeNumber(const TensorUse& use) {
  c10::Scalar value;
  if (use.number_kind == ValueKind::kBool) {
    value = use.number != 0;
  } else if (use.number_kind == ValueKind::kInt) {
    value = static_cast<int64_t>(use.number);
  } else {
    value = std::bit_cast<double>(use.number);
  }
  at::Tensor tensor = at::scalar_tensor(value, c10::TensorOptions().dtype(value.type()));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

}  // namespace

FilledElement FilledElementOf(c10::ScalarType type) {
  if (type == c10::kBool) return FilledElement::kBool;
  if (!c10::isIntegralType(type, false)) return FilledElement::kFloat;
  return c10::elementSize(type) == 1 ? FilledElement::kByte : FilledElement::kInteger;
}

OffHeapBytes::OffHeapBytes(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  void* copy =
      mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return;
  std::memcpy(copy, bytes.data(), bytes.size());
  bytes_ = {static_cast<uint8_t*>(copy), bytes.size()};
}

OffHeapBytes::~OffHeapBytes() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

std::optional<c10::ScalarType> ScalarTypeOf(const Trace& trace, const TensorUse& use) {
  const int number = ScalarTypeNumber(DTypeOf(trace, use));
  return number < 0 ? std::nullopt : std::optional(static_cast<c10::ScalarType>(number));
}

Result<at::Tensor> MakeView(const Trace& trace, const TensorUse& use, const c10::Storage& storage) {
  const std::optional<TensorShape> shape = ShapeOf(trace, use);
  const std::optional<c10::ScalarType> type = ScalarTypeOf(trace, use);
  if (!shape || !type) {
    return BadInput("a tensor of type '" + std::string(trace.text(use.type)) + "'");
  }
  if (shape->storage_bytes > static_cast<int64_t>(storage.nbytes())) {
    return BadInput("a view of " + std::to_string(shape->storage_bytes) + " bytes on memory of " +
                    std::to_string(storage.nbytes()));
  }
  try {
    at::Tensor tensor = TensorOn(storage, *type);
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(shape->sizes, shape->strides, use.offset);
    return tensor;
  } catch (const std::exception& error) {
    return BadInput(FirstLine(error.what()));
  }
}

void CopyBytes(const c10::Storage& from, const c10::Storage& to) {
  const size_t bytes = std::min(from.nbytes(), to.nbytes());
  if (from.device().is_cpu() && to.device().is_cpu()) {
    if (bytes > 0) std::memcpy(to.mutable_data(), from.data(), bytes);
    return;
  }
  const auto count = static_cast<int64_t>(bytes);
  BytesOf(to).narrow(0, 0, count).copy_(BytesOf(from).narrow(0, 0, count));
}

Status OutsideMemory::Provide(const ReplayPlan& plan, const OutsideStorage& wanted,
                              std::span<const FillRule> rules, std::vector<at::Tensor>& slots) {
  Block& block = blocks_[wanted.version];
  const TensorUse& first = trace_.tensor(plan.slots[wanted.slots.front().index()].tensor);
  const bool is_new = !block.storage || block.bytes < wanted.bytes;
  if (is_new) {
    bytes_ += wanted.bytes - block.bytes;
    block.bytes = wanted.bytes;
    block.rule = rules[wanted.version.index()];
    block.seed = seed_ * 0x9E3779B97F4A7C15ULL + wanted.version.value();
    block.form.reset();
    const std::string device = devices_.Map(trace_.text(first.device));
    const bool is_pinned = device == "cpu" && pinned_.contains(wanted.version);
    ETUDE_ASSIGN_OR_RETURN(block.storage, is_pinned ? MakePinnedStorage(wanted.bytes)
                                                    : MakeStorage(wanted.bytes, device));
  }
  for (const SlotId slot : wanted.slots) {
    const TensorUse& use = trace_.tensor(plan.slots[slot.index()].tensor);
    if (use.number_kind != ValueKind::kNone) {
      slots[slot.index()] = MakeNumber(use);
    } else {
      ETUDE_ASSIGN_OR_RETURN(slots[slot.index()], MakeView(trace_, use, block.storage));
    }
  }
  if (!is_new) return {};
  block.form = slots[wanted.slots.front().index()];
  ETUDE_RETURN_IF_ERROR(Fill(block));
  return restored_.contains(wanted.version) ? KeepOriginal(block) : Status();
}

Status OutsideMemory::Fill(Block& block) {
  const at::Tensor& form = block.form;
  if (!form.defined()) return {};
  try {
    const at::Tensor whole = WholeOf(block.storage, form.scalar_type());
    const MemoryFill fill =
        FillBy(block.rule, FilledElementOf(form.scalar_type()), whole.numel(), form.sizes());
    const auto fill_with = block.storage.device().is_cpu() ? FillTensor : FillOnDevice;
    fill_with(whole, fill, block.rule.recorded.get(), block.seed);
  } catch (const std::exception& error) {
    return Unavailable("filling a tensor: " + FirstLine(error.what()));
  }
  return {};
}

Status OutsideMemory::KeepOriginal(Block& block) {
  if (block.storage.device().is_meta()) return {};
  if (KeepOnDevice(block)) return {};
  try {
    const at::Tensor bytes = BytesOf(block.storage).cpu();
    const auto size = static_cast<size_t>(bytes.numel());
    block.original = OffHeapBytes({static_cast<const uint8_t*>(bytes.const_data_ptr()), size});
    if (block.original.bytes().size() == size) return {};
    return Unavailable("cannot allocate memory for a copy of " + std::to_string(size) + " bytes");
  } catch (const std::exception& error) {
    return Unavailable("copying memory: " + FirstLine(error.what()));
  }
}

// Returns false if there is no device with room.
bool OutsideMemory::KeepOnDevice(Block& block) {
  if (!may_keep_on_device_ || block.storage.device().is_cpu()) return false;
  try {
    block.on_device = BytesOf(block.storage).clone();
  } catch (const std::exception&) {
    may_keep_on_device_ = false;
  }
  return may_keep_on_device_;
}

Status OutsideMemory::BringOriginalsHere() {
  may_keep_on_device_ = false;
  for (auto& [version, block] : blocks_) {
    if (!block.on_device.defined()) continue;
    ETUDE_RETURN_IF_ERROR(Restore(block));
    block.on_device.reset();
    ETUDE_RETURN_IF_ERROR(KeepOriginal(block));
  }
  return {};
}

bool OutsideMemory::keeps_on_device() const {
  return std::ranges::any_of(blocks_,
                             [](const auto& one) { return one.second.on_device.defined(); });
}

int64_t OutsideMemory::copied_bytes() const {
  int64_t bytes = 0;
  for (const auto& [version, block] : blocks_) {
    bytes += static_cast<int64_t>(block.original.bytes().size());
  }
  return bytes;
}

Status OutsideMemory::NoteContent() {
  for (auto& [version, block] : blocks_) {
    ETUDE_ASSIGN_OR_RETURN(block.checksum, Checksum(block.storage));
  }
  return {};
}

Result<std::vector<StorageVersion>> OutsideMemory::Changed() const {
  std::vector<StorageVersion> changed;
  for (const auto& [version, block] : blocks_) {
    ETUDE_ASSIGN_OR_RETURN(const uint64_t checksum, Checksum(block.storage));
    if (checksum != block.checksum) changed.push_back(version);
  }
  return changed;
}

Status OutsideMemory::KeepOriginals(std::span<const StorageVersion> changed) {
  restored_.insert(changed.begin(), changed.end());
  for (const StorageVersion version : changed) {
    const auto found = blocks_.find(version);
    if (found != blocks_.end()) ETUDE_RETURN_IF_ERROR(KeepOriginal(found->second));
  }
  return {};
}

Status OutsideMemory::Refill(std::span<const StorageVersion> changed) {
  for (const StorageVersion version : changed) {
    const auto found = blocks_.find(version);
    if (found != blocks_.end()) ETUDE_RETURN_IF_ERROR(Fill(found->second));
  }
  return {};
}

Status OutsideMemory::Restore() {
  for (auto& [version, block] : blocks_) ETUDE_RETURN_IF_ERROR(Restore(block));
  return {};
}

Status OutsideMemory::Restore(Block& block) {
  try {
    const auto original = block.original.bytes();
    if (block.on_device.defined()) {
      BytesOf(block.storage).copy_(block.on_device);
    } else if (!original.empty() && block.storage.device().is_cpu()) {
      std::memcpy(block.storage.mutable_data(), original.data(), original.size());
    } else if (!original.empty()) {
      const at::Tensor host = at::empty({static_cast<int64_t>(original.size())},
                                        c10::TensorOptions().dtype(c10::kByte));
      std::memcpy(host.data_ptr(), original.data(), original.size());
      BytesOf(block.storage).copy_(host);
    }
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kInternal, "restoring memory: " + FirstLine(error.what()));
  }
  return {};
}

int OutsideMemory::CountNonFinite() const {
  int count = 0;
  for (const auto& [version, block] : blocks_) {
    count += CountTensorsWith(block.form, [](float v) { return !std::isfinite(v); });
  }
  return count;
}

int OutsideMemory::CountDenormal() const {
  int count = 0;
  for (const auto& [version, block] : blocks_) {
    count +=
        CountTensorsWith(block.form, [](float v) { return std::fpclassify(v) == FP_SUBNORMAL; });
  }
  return count;
}

Result<at::Tensor> MakeStandIn(const Trace& trace, const TensorUse& use, const DeviceMap& devices) {
  const std::optional<TensorShape> shape = ShapeOf(trace, use);
  const std::optional<c10::ScalarType> type = ScalarTypeOf(trace, use);
  if (!shape || !type) return BadInput("a tensor without a known form");
  try {
    const at::Tensor zeros = at::zeros(
        {shape->storage_bytes},
        c10::TensorOptions().dtype(c10::kByte).device(devices.Map(trace.text(use.device))));
    return MakeView(trace, use, zeros.storage());
  } catch (const std::exception& error) {
    return Unavailable(FirstLine(error.what()));
  }
}

}  // namespace etude
