#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace etude {

// A growing byte buffer. Doubles its capacity, never shrinks, and does not zero memory. Ensure
// reserves room for a batch of unchecked Put calls. Not thread-safe.
class ByteBuffer {
 public:
  // Reserves room for `count` more bytes.
  void Ensure(size_t count) {
    if (capacity_ - size_ < count) Grow(count);
  }

  // Require room reserved by Ensure.
  void Put(char c) { data_[size_++] = c; }
  void Put(std::string_view bytes) {
    std::memcpy(data_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }

  void PutSpaces(size_t count) {
    std::memset(data_.get() + size_, ' ', count);
    size_ += count;
  }

  void Append(char c) {
    Ensure(1);
    Put(c);
  }
  void Append(std::string_view bytes) {
    if (bytes.empty()) return;
    Ensure(bytes.size());
    Put(bytes);
  }
  void AppendSpaces(size_t count) {
    Ensure(count);
    PutSpaces(count);
  }
  // Appends a copy of own bytes.
  void AppendCopy(size_t begin, size_t count) {
    Ensure(count);
    std::memcpy(data_.get() + size_, data_.get() + begin, count);
    size_ += count;
  }

  // For direct writes into reserved room: current end, and new end afterwards.
  char* end() { return data_.get() + size_; }
  void set_end(const char* end) { size_ = static_cast<size_t>(end - data_.get()); }

  void Clear() { size_ = 0; }
  size_t size() const { return size_; }
  std::string_view view() const { return {data_.get(), size_}; }
  std::string_view view(size_t begin, size_t end) const {
    return {data_.get() + begin, end - begin};
  }

 private:
  void Grow(size_t count) {
    size_t capacity = capacity_ == 0 ? 4096 : capacity_ * 2;
    while (capacity - size_ < count) capacity *= 2;
    std::unique_ptr<char[]> data(new char[capacity]);
    if (size_ != 0) std::memcpy(data.get(), data_.get(), size_);
    data_ = std::move(data);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace etude
