#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

// File format of the native recorder (docs/formats/native_capture.md), for its writer and its
// reader. A file is the magic bytes and a sequence of blocks. A block is a BlockHeader and a zstd
// frame, which contains a sequence of records whose numbers are varints.
namespace etude::capture {

inline constexpr std::string_view kMagic = "ETUDECAP";
// 2: statistics of index tensors, allocations. 3: ranks of process groups, thread ids of CUPTI.
// Readers support all versions up to theirs.
inline constexpr uint32_t kVersion = 3;

enum class BlockKind : uint8_t {
  kHeader = 1,       // JSON: version and facts of the process; the first block
  kDefinitions = 2,  // definitions of strings, functions and threads, before their first use
  kEvents = 3,       // events of one thread: `thread`, `time`, `node`, `handle`, then events
  kEnd = 4,          // JSON: counts of omissions; the last block of a complete file
};

// Precedes each block, little-endian.
struct BlockHeader {
  static constexpr uint32_t kMark = 0x4B4C4245;  // "EBLK"
  static constexpr size_t kBytes = 20;

  uint32_t mark = kMark;
  uint8_t kind = 0;           // BlockKind; readers skip blocks of unknown kinds
  uint8_t reserved[3] = {};   // zero
  uint32_t raw_bytes = 0;     // of the records
  uint32_t packed_bytes = 0;  // of the zstd frame that follows
  uint32_t checksum = 0;      // CRC-32 of the frame
};
static_assert(sizeof(BlockHeader) == BlockHeader::kBytes);
static_assert(std::endian::native == std::endian::little);

// Size of the records at which a writer begins a new block; a block may exceed it by one record.
inline constexpr size_t kBlockBytes = size_t{128} << 10;

enum class Definition : uint8_t {
  kString = 1,    // bytes; strings are numbered in order, from 0
  kFunction = 2,  // name (string), schema (string + 1; 0: none); numbered in order, from 0
  // thread (number from 0), node, torch's thread id, the system's thread id, since version 3 the
  // lower 32 bits of pthread_self()
  kThread = 3,
};

enum class Event : uint8_t {
  // Time, node and handle are differences from the previous ones of the block (zigzag). Fields:
  // time, overhead, node, handle, function, scope, sequence number + 1, forward thread id, modes,
  // number of inputs, inputs.
  kEnter = 1,
  // End of the thread's innermost open call: time, overhead, number of outputs, outputs.
  kExit = 2,
  // Like kExit, after a number: as many open calls inside it continue and end elsewhere.
  kExitOver = 3,
  // End of a call that is not open on this thread: handle (whole), time, overhead, outputs.
  kExitElsewhere = 4,
  // Allocation by the CPU's allocator: time, overhead, address (8 bytes), bytes.
  kAllocate = 5,
  // Release of memory that it allocated in this or an earlier recording of the process: time,
  // overhead, address.
  kFree = 6,
};

// Bits of `modes`.
inline constexpr uint8_t kGradMode = 1;
inline constexpr uint8_t kInferenceMode = 2;
inline constexpr uint8_t kAutocast = 4;

enum class Tag : uint8_t {
  kNone = 0,
  kFalse = 1,
  kTrue = 2,
  kInt = 3,                     // zigzag
  kDouble = 4,                  // 8 bytes
  kComplex = 5,                 // 16 bytes
  kString = 6,                  // length, bytes
  kDevice = 7,                  // string
  kTensor = 8,                  // flags (tensor_flag), then its facts
  kUndefinedTensor = 9,         // undefined tensor
  kList = 10,                   // count, values
  kTuple = 11,                  // count, values
  kGenerator = 12,              // device (string), seed
  kProcessGroup = 13,           // name, description, backend (length and bytes each), rank, size
  kReduceOp = 14,               // number of c10d's enumeration
  kOpaque = 15,                 // length, bytes: the name of its type
  kSymbolic = 16,               // length, bytes: "SymInt", … for a symbolic value
  kProcessGroupWithRanks = 17,  // as kProcessGroup, then the number of ranks and the ranks
};

// A tensor: flags, dtype (string), device (string), then by the flags: address of the tensor (8
// bytes); kHasStorage: address of its memory (8 bytes), offset in elements, bytes of the storage;
// kLayout: number of the layout; unless kNoSizes: dimensions, sizes and, unless kContiguous,
// strides (zigzag); kWrappedNumber: its value; kRange: min and max element (zigzag); kStatistics:
// numbers of examined elements, of distinct values and of equal pairs among these, and a byte of
// index_flag; kValues: number of elements and their differences (zigzag).
namespace tensor_flag {
inline constexpr uint8_t kContiguous = 1;
inline constexpr uint8_t kRequiresGrad = 2;
inline constexpr uint8_t kWrappedNumber = 4;  // a Python number that became a tensor
inline constexpr uint8_t kHasStorage = 8;
inline constexpr uint8_t kNoSizes = 16;      // symbolic, or of a kind without sizes
inline constexpr uint8_t kLayout = 32;       // not strided
inline constexpr uint8_t kRange = 64;        // of an integer argument, if requested
inline constexpr uint8_t kStatistics = 128;  // of an index argument; implies kRange
}  // namespace tensor_flag
namespace index_flag {
inline constexpr uint8_t kAscends = 1;  // no element is less than its predecessor
inline constexpr uint8_t kValues = 2;   // all elements follow
}  // namespace index_flag

inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// Buffer of records for a block. Not thread-safe.
class RecordBuffer {
 public:
  RecordBuffer() = default;
  RecordBuffer(const RecordBuffer&) = delete;
  RecordBuffer& operator=(const RecordBuffer&) = delete;

  void Byte(uint8_t value) {
    Room(1);
    *end_++ = static_cast<char>(value);
  }
  template <typename Enum>
  void Mark(Enum value) {
    Byte(static_cast<uint8_t>(value));
  }
  void Varint(uint64_t value) {
    Room(10);
    while (value >= 0x80) {
      *end_++ = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    *end_++ = static_cast<char>(value);
  }
  void Signed(int64_t value) { Varint(ZigZag(value)); }
  void Fixed64(uint64_t value) {
    Room(8);
    std::memcpy(end_, &value, 8);
    end_ += 8;
  }
  void Text(std::string_view text) {
    Varint(text.size());
    Room(text.size());
    if (!text.empty()) std::memcpy(end_, text.data(), text.size());
    end_ += text.size();
  }
  size_t size() const { return static_cast<size_t>(end_ - bytes_.data()); }
  bool empty() const { return size() == 0; }
  // Discards all but the first `size` bytes.
  void Truncate(size_t size) { end_ = bytes_.data() + size; }
  // Returns the records so far and empties the buffer.
  std::string Take() {
    std::string taken = std::move(bytes_);
    taken.resize(static_cast<size_t>(end_ - taken.data()));
    bytes_ = std::string();
    end_ = bytes_.data();
    return taken;
  }

 private:
  void Room(size_t bytes) {
    if (static_cast<size_t>(bytes_.data() + bytes_.size() - end_) < bytes) Grow(bytes);
  }
  void Grow(size_t bytes) {
    const size_t used = size();
    bytes_.resize(std::max(used + bytes, std::max<size_t>(4096, 2 * bytes_.size())));
    end_ = bytes_.data() + used;
  }

  std::string bytes_;
  char* end_ = bytes_.data();
};

// Decodes records. Reading past the end, or an invalid number, sets `failed` and returns zeros from
// then on.
class RecordView {
 public:
  explicit RecordView(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool done() const { return at_ == end_ || failed_; }
  bool failed() const { return failed_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  uint8_t Byte() {
    if (at_ == end_) return static_cast<uint8_t>(Fail());
    return static_cast<uint8_t>(*at_++);
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) return Fail();
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    return Fail();
  }
  int64_t Signed() { return UnZigZag(Varint()); }
  uint64_t Fixed64() {
    if (left() < 8) return Fail();
    uint64_t value = 0;
    std::memcpy(&value, at_, 8);
    at_ += 8;
    return value;
  }
  std::string_view Text() {
    const uint64_t size = Varint();
    if (size > left()) {
      Fail();
      return {};
    }
    const std::string_view text(at_, static_cast<size_t>(size));
    at_ += size;
    return text;
  }

 private:
  uint64_t Fail() {
    failed_ = true;
    at_ = end_;
    return 0;
  }

  const char* at_;
  const char* end_;
  bool failed_ = false;
};

}  // namespace etude::capture
