#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/result.h"

// JSON as accepted by Python's json module: numbers of any length, NaN and Infinity, lone
// surrogates and repeated keys are legal, and number texts are kept. simdjson supports none of
// this.
namespace etude::compat {

// Keys of one object, to detect irregular ones.
class KeySet {
 public:
  KeySet() {}  // uninitialised for speed: one instance per object

  // Adds a key. Returns false if it is a duplicate, is not plain (has escapes), or exceeds the
  // number of keys that are compared.
  bool Add(std::string_view key, bool is_plain) {
    if (count_ == kRoom || !is_plain) return false;
    for (size_t i = 0; i < count_; ++i) {
      if (std::string_view(keys_[i], sizes_[i]) == key) return false;
    }
    keys_[count_] = key.data();
    sizes_[count_++] = key.size();
    return true;
  }

 private:
  static constexpr size_t kRoom = 16;
  const char* keys_[kRoom];
  size_t sizes_[kRoom];
  size_t count_ = 0;
};

// Scans a JSON text once. Values are returned as validated pieces of text. After the first error
// all calls do nothing and return false; status() returns the error. Views point into the text. Not
// thread-safe.
class JsonScanner {
 public:
  // `name`: of the file, for messages. Nesting beyond `max_depth` is an error.
  JsonScanner(std::string_view text, std::string_view name, size_t max_depth);

  // Enter the next array or object. Return false, without an error, if the next value is of another
  // type.
  bool EnterObject() { return Enter('{'); }
  bool EnterArray() { return Enter('['); }
  // Advances to the next member of the current object (`key` includes its quotes), or to the next
  // element of the current array. Returns false after the last one, and leaves the container.
  // `first` must start as true.
  bool NextMember(bool& first, std::string_view& key);
  bool NextElement(bool& first);
  // Returns the next value.
  std::string_view Value();
  // Reports an error unless only blanks follow the document's value.
  void ExpectEnd();

  // Return the position of the next value, and the end of the previous one.
  const char* Position();
  const char* Last() const { return at_; }
  // Returns whether the previous string, key or value, has no escapes.
  bool last_is_plain() const { return last_is_plain_; }
  // Returns whether an object scanned by Value since the last call had keys refused by KeySet.
  bool TakeIrregular() { return std::exchange(irregular_, false); }

  void Fail(std::string_view problem);
  bool failed() const { return failed_; }
  Status status() const;

 private:
  bool Enter(char open);
  void SkipBlanks();
  bool ScanValue(size_t depth);
  bool ScanObject(size_t depth);
  bool ScanArray(size_t depth);
  // Scans the next key and its ':'.
  bool ScanKey(std::string_view& key);
  bool ScanString();
  bool ScanNumber();
  bool ScanWord(std::string_view word);

  const char* begin_;
  const char* at_;
  const char* end_;
  std::string name_;
  size_t max_depth_;
  size_t depth_ = 0;
  bool irregular_ = false;
  bool last_is_plain_ = true;
  bool failed_ = false;
  std::string problem_;
  size_t problem_at_ = 0;
};

}  // namespace etude::compat
