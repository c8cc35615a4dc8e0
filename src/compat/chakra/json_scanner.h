#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/result.h"

// JSON as Python's json module has it: numbers of any length, NaN and Infinity, lone surrogates and
// repeated keys are all legal there, and the text of a number matters; simdjson has none of that.
namespace etude::compat {

// The keys of one object, to see whether they need a second look.
class KeySet {
 public:
  KeySet() {}  // leaves room uninitialised: there is one of these for each object

  // False if `key` was there before, has escapes (is not plain), or is one of so many that they
  // were not all compared.
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

// Walks over a JSON text once. Values come out as the pieces of text that they are, checked. After
// the first fault every call does nothing and says "no more"; status() says what it was. Views
// point into the text. Not thread-safe.
class JsonScanner {
 public:
  // `name` is the file's, for messages. Nesting beyond `max_depth` is a fault.
  JsonScanner(std::string_view text, std::string_view name, size_t max_depth);

  // Enters the array or object that comes next; false, without a fault, if it is anything else.
  bool EnterObject() { return Enter('{'); }
  bool EnterArray() { return Enter('['); }
  // Goes to the next member of the entered object, `key` with its quotes, or the next element of
  // the entered array; false behind the last one, which leaves it. `first` starts as true.
  bool NextMember(bool& first, std::string_view& key);
  bool NextElement(bool& first);
  // The value that comes next.
  std::string_view Value();
  // Behind the document's value there may only be blanks.
  void ExpectEnd();

  // The place of what comes next, and where what came last ended.
  const char* Position();
  const char* Last() const { return at_; }
  // Whether the string that came last, as key or value, has no escapes.
  bool last_is_plain() const { return last_is_plain_; }
  // Whether any object scanned by Value since the last call had keys that KeySet refused.
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
  // The key that comes next and the ':' behind it.
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
