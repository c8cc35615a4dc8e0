#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/result.h"
#include "src/compat/byte_buffer.h"

// JSON as Python's json module has it: texts in, the texts that Python would make of them out.
// Numbers of any length, NaN and Infinity, lone surrogates and repeated keys are all legal there,
// and the text of a number matters; simdjson has none of that, so this module scans by itself.
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

// The functions below take text that JsonScanner has checked.

// Whether the string with quotes `json` contains no escape: then its characters are its text.
inline bool IsPlain(std::string_view json) { return json.find('\\') == std::string_view::npos; }
// The characters of a string with quotes. Lone surrogates become three bytes each, which is not
// valid UTF-8; HasSurrogate tells.
std::string DecodeString(std::string_view json);
bool HasSurrogate(std::string_view decoded);

// `json` with each repeated key of an object at its first place with its last value, and without
// escapes in keys: what is left of it in a Python dict.
std::string WithoutRepeatedKeys(std::string_view json);

// What json.dump(value, indent=4) writes for `json` where `level` containers are open around it.
void AppendPyDump(std::string_view json, size_t level, ByteBuffer& out);
// The same for one string, with quotes on both sides.
void AppendPyDumpString(std::string_view json, ByteBuffer& out);
// The inside of the string that json.dump writes for `text`, which is no JSON but the characters
// themselves, in valid UTF-8.
void AppendPyDumpText(std::string_view text, ByteBuffer& out);
// What str(value) is for `json`: for a string its characters, else the repr.
void AppendPyStr(std::string_view json, ByteBuffer& out);
// repr() of a float and, if `json`, what json.dump makes of it: they differ in NaN and infinities.
void AppendPyFloat(double value, bool json, ByteBuffer& out);

// A newline and the blanks of `level` open containers.
inline void AppendPyIndent(size_t level, ByteBuffer& out) {
  out.Append('\n');
  out.AppendSpaces(4 * level);
}

}  // namespace etude::compat
