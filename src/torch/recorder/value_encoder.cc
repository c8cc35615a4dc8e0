#include "src/torch/recorder/value_encoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include <ATen/core/Generator.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

namespace etude::recorder {
namespace {

using capture::RecordBuffer;
using capture::Tag;
namespace flag = capture::tensor_flag;

constexpr int kMostDepth = 32;

uint64_t AddressOf(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

void Opaque(std::string_view name, RecordBuffer& buffer) {
  buffer.Mark(Tag::kOpaque);
  buffer.Text(name);
}

void Double(double value, RecordBuffer& buffer) { buffer.Fixed64(std::bit_cast<uint64_t>(value)); }

// Appends the value of a one-element CPU tensor.
void WrappedNumber(c10::ScalarType type, const void* at, RecordBuffer& buffer) {
  const auto as = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (type) {
    case c10::ScalarType::Double: buffer.Mark(Tag::kDouble); return Double(as(double{}), buffer);
    case c10::ScalarType::Long: buffer.Mark(Tag::kInt); return buffer.Signed(as(int64_t{}));
    case c10::ScalarType::Bool: return buffer.Mark(as(uint8_t{}) != 0 ? Tag::kTrue : Tag::kFalse);
    case c10::ScalarType::ComplexDouble:
      buffer.Mark(Tag::kComplex);
      Double(as(double{}), buffer);
      at = static_cast<const char*>(at) + sizeof(double);
      return Double(as(double{}), buffer);
    default: return Opaque("number", buffer);
  }
}

// Calls `use` with the elements of an integer tensor. Returns false for other types, and for
// tensors without elements or memory.
template <typename Use>
bool WithIntegers(const c10::TensorImpl& impl, const c10::StorageImpl& storage, Use use) {
  const c10::ScalarType type = impl.dtype().toScalarType();
  if (!c10::isIntegralType(type, /*includeBool=*/false) || impl.numel() == 0) return false;
  const void* memory = storage.data();
  if (memory == nullptr) return false;
  const char* data = static_cast<const char*>(memory) +
                     static_cast<size_t>(impl.storage_offset()) * impl.itemsize();
  const auto as = [&](auto element) {
    use(static_cast<const decltype(element)*>(static_cast<const void*>(data)));
    return true;
  };
  switch (type) {
    case c10::ScalarType::Byte: return as(uint8_t{});
    case c10::ScalarType::Char: return as(int8_t{});
    case c10::ScalarType::Short: return as(int16_t{});
    case c10::ScalarType::Int: return as(int32_t{});
    case c10::ScalarType::Long: return as(int64_t{});
    default: return false;
  }
}

std::span<const int64_t> Span(c10::IntArrayRef ints) { return {ints.data(), ints.size()}; }

// Returns whether elements are contiguous in order. PyTorch's is_contiguous() ignores strides of
// dimensions of size 1, which show how convolutions lay out their results.
bool HasUsualStrides(const c10::TensorImpl& impl) {
  const c10::IntArrayRef sizes = impl.sizes();
  const c10::IntArrayRef strides = impl.strides();
  uint64_t wanted = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (static_cast<uint64_t>(strides[i]) != wanted) return false;
    wanted *= static_cast<uint64_t>(std::max<int64_t>(sizes[i], 1));
  }
  return true;
}

}  // namespace

void ValueEncoder::Encode(c10::ArrayRef<const c10::IValue> values, const IntegerArguments& integers,
                          RecordBuffer& buffer) {
  buffer.Varint(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bit = uint64_t{1} << std::min<size_t>(i, 63);
    with_ranges_ = (integers.ranges & bit) != 0;
    with_statistics_ = (integers.statistics & bit) != 0;
    Encode(values[i], buffer, 0);
  }
}

void ValueEncoder::Encode(const c10::IValue& value, RecordBuffer& buffer, int depth) {
  if (value.isTensor()) {
    const size_t begin = buffer.size();
    try {
      EncodeTensor(value.toTensor(), buffer);
    } catch (const std::exception&) {
      buffer.Truncate(begin);
      Opaque("Tensor", buffer);
    }
  } else if (value.isNone()) {
    buffer.Mark(Tag::kNone);
  } else if (value.isInt()) {
    buffer.Mark(Tag::kInt);
    buffer.Signed(value.toInt());
  } else if (value.isBool()) {
    buffer.Mark(value.toBool() ? Tag::kTrue : Tag::kFalse);
  } else if (value.isDouble()) {
    buffer.Mark(Tag::kDouble);
    Double(value.toDouble(), buffer);
  } else if (value.isList()) {
    EncodeList(Tag::kList, value.toListRef(), buffer, depth);
  } else if (value.isTuple()) {
    const auto elements = value.toTupleRef().elements().vec();
    EncodeList(Tag::kTuple, elements, buffer, depth);
  } else if (value.isString()) {
    buffer.Mark(Tag::kString);
    buffer.Text(value.toStringRef());
  } else if (value.isDevice()) {
    buffer.Mark(Tag::kDevice);
    buffer.Varint(DeviceString(value.toDevice()));
  } else if (value.isComplexDouble()) {
    buffer.Mark(Tag::kComplex);
    Double(value.toComplexDouble().real(), buffer);
    Double(value.toComplexDouble().imag(), buffer);
  } else if (value.isGenerator()) {
    const at::Generator& generator = value.toGenerator();
    if (!generator.defined()) return buffer.Mark(Tag::kNone);
    buffer.Mark(Tag::kGenerator);
    buffer.Varint(DeviceString(generator.device()));
    buffer.Varint(generator.current_seed());
  } else if (value.isSymInt() || value.isSymFloat() || value.isSymBool()) {
    buffer.Mark(Tag::kSymbolic);
    buffer.Text(value.tagKind());
  } else if (value.isObject()) {
    EncodeObject(value, buffer);
  } else {
    Opaque(value.tagKind(), buffer);
  }
}

void ValueEncoder::EncodeList(Tag tag, c10::ArrayRef<c10::IValue> values, RecordBuffer& buffer,
                              int depth) {
  if (depth == kMostDepth) return Opaque("nested too deeply", buffer);
  buffer.Mark(tag);
  buffer.Varint(values.size());
  for (const c10::IValue& value : values) Encode(value, buffer, depth + 1);
}

void ValueEncoder::EncodeObject(const c10::IValue& value, RecordBuffer& buffer) {
  const std::string name = value.toObjectRef().name();
  if (!EncodeDistributed(value, name, buffer)) Opaque(name, buffer);
}

void ValueEncoder::EncodeTensor(const at::Tensor& tensor, RecordBuffer& buffer) {
  if (!tensor.defined()) return buffer.Mark(Tag::kUndefinedTensor);
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const bool strided = impl.layout() == c10::kStrided;
  const bool has_sizes = !impl.has_symbolic_sizes_strides() && !impl.is_nested();
  const bool contiguous = strided && has_sizes && HasUsualStrides(impl);
  const c10::StorageImpl* storage = nullptr;
  if (impl.has_storage() && has_sizes) storage = impl.unsafe_storage().unsafeGetStorageImpl();
  uint8_t flags = 0;
  if (contiguous) flags |= flag::kContiguous;
  if (impl.requires_grad()) flags |= flag::kRequiresGrad;
  if (storage != nullptr) flags |= flag::kHasStorage;
  if (!has_sizes) flags |= flag::kNoSizes;
  if (!strided) flags |= flag::kLayout;
  const bool is_number = impl.is_wrapped_number() && storage != nullptr && impl.device().is_cpu() &&
                         storage->data() != nullptr;
  if (is_number) flags |= flag::kWrappedNumber;
  std::optional<capture::IntegerFacts> integers;
  if (with_ranges_ && strided && storage != nullptr && impl.device().is_cpu()) {
    WithIntegers(impl, *storage, [&](const auto* data) {
      integers = reader_.Read(data, Span(impl.sizes()), Span(impl.strides()), with_statistics_);
    });
  }
  if (integers) flags |= flag::kRange;
  if (integers && integers->sampled != 0) flags |= flag::kStatistics;

  buffer.Mark(Tag::kTensor);
  buffer.Byte(flags);
  buffer.Varint(TypeString(impl.dtype()));
  buffer.Varint(DeviceString(impl.device()));
  buffer.Fixed64(AddressOf(&impl));
  if (storage != nullptr) {
    // Bypasses the checks of data(): storages whose data must not be read still have an address.
    auto& pointer = const_cast<c10::StorageImpl*>(storage)->_mutable_data_ptr_no_checks();
    buffer.Fixed64(AddressOf(pointer.get()));
    buffer.Varint(static_cast<uint64_t>(impl.storage_offset()));
    buffer.Varint(storage->nbytes());
  }
  if (!strided) buffer.Varint(static_cast<uint64_t>(impl.layout()));
  if (has_sizes) {
    const c10::IntArrayRef sizes = impl.sizes();
    buffer.Varint(sizes.size());
    for (const int64_t size : sizes) buffer.Varint(static_cast<uint64_t>(size));
    if (strided && !contiguous) {
      for (const int64_t stride : impl.strides()) buffer.Signed(stride);
    }
  }
  if (is_number) {
    const char* data = static_cast<const char*>(storage->data());
    const auto offset = static_cast<size_t>(impl.storage_offset()) * impl.itemsize();
    WrappedNumber(impl.dtype().toScalarType(), data + offset, buffer);
  }
  if (integers) {
    buffer.Signed(integers->least);
    buffer.Signed(integers->greatest);
  }
  if (integers && integers->sampled != 0) EncodeStatistics(impl, *storage, *integers, buffer);
}

void ValueEncoder::EncodeStatistics(const c10::TensorImpl& impl, const c10::StorageImpl& storage,
                                    const capture::IntegerFacts& facts, RecordBuffer& buffer) {
  buffer.Varint(facts.sampled);
  buffer.Varint(facts.distinct);
  buffer.Varint(facts.equal_pairs);
  const bool with_values = TakeValueBytes(impl.numel() * static_cast<int64_t>(impl.itemsize()));
  uint8_t flags = facts.ascends ? capture::index_flag::kAscends : 0;
  if (with_values) flags |= capture::index_flag::kValues;
  buffer.Byte(flags);
  if (!with_values) return;
  WithIntegers(impl, storage, [&](const auto* data) {
    const auto values = reader_.Values(data, Span(impl.sizes()), Span(impl.strides()));
    buffer.Varint(values.size());
    uint64_t last = 0;
    for (const int64_t value : values) {
      buffer.Signed(static_cast<int64_t>(static_cast<uint64_t>(value) - last));
      last = static_cast<uint64_t>(value);
    }
  });
}

bool ValueEncoder::TakeValueBytes(int64_t bytes) {
  // A tensor must fit into one block, which readers hold in memory.
  constexpr int64_t kMostOfOne = int64_t{16} << 20;
  if (bytes > kMostOfOne) return false;
  int64_t left = value_bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > left) return false;
  } while (!value_bytes_.compare_exchange_weak(left, left - bytes));
  return true;
}

uint64_t ValueEncoder::TypeString(caffe2::TypeMeta type) {
  const auto index = static_cast<size_t>(type.toScalarType());
  if (index >= types_.size()) types_.resize(index + 1);
  if (types_[index] == 0) types_[index] = writer_.DefineString(type.name()) + 1;
  return types_[index] - 1;
}

uint64_t ValueEncoder::DeviceString(c10::Device device) {
  constexpr size_t kIndices = 257;  // -1 to 255
  const auto index = static_cast<size_t>(device.type()) * kIndices +
                     static_cast<size_t>(device.index() + 1) % kIndices;
  if (index >= devices_.size()) devices_.resize(index + 1);
  if (devices_[index] == 0) devices_[index] = writer_.DefineString(device.str()) + 1;
  return devices_[index] - 1;
}

}  // namespace etude::recorder
