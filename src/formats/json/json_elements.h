#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/stats.h"

namespace etude {

struct ElementRules;

// A piece of a JSON document. The views stay valid until the next call of JsonElements::Next.
struct JsonItem {
  enum class Kind : uint8_t {
    kNone,     // nothing more in the bytes pushed so far
    kElement,  // an element of the array `key`
    kMember,   // a top-level member that is not the array
    kArray,    // the array `key` begins
  };

  Kind kind = Kind::kNone;
  std::string_view key{};   // unescaped; "" for the elements of a top-level array
  std::string_view text{};  // JSON text; kPadding more bytes are readable behind it
  uint64_t offset = 0;      // of the text's first byte in the document
  uint64_t index = 0;       // kElement: its number in the array, from 0
};

// Cuts the elements of one array out of a JSON document that comes in chunks of any size, so that
// a document of any size needs the memory of its largest element. The document is an object that
// has the array as a member, or, if allowed, the array itself.
//
// Checked here: the grammar outside the elements; inside them that brackets match and strings end;
// the limits `depth` and `element_bytes`. Repaired and counted: invalid escapes, raw control bytes
// in strings, lone surrogates, invalid UTF-8; with rules for the elements also names whose
// quotation marks are not escaped, and commas too many or too few. What an element says is for its
// reader to check. Not thread-safe.
class JsonElements {
 public:
  static constexpr size_t kPadding = 64;

  struct Options {
    std::string name;                     // of the file, for messages
    std::vector<std::string> array_keys;  // the first of these met as a member is the array
    bool bare_array = false;              // the document may be the array itself
    Limits limits;
    // How the elements are written, for repairs; static. Null: nothing of that kind is repaired.
    const ElementRules* rules = nullptr;
    bool strict = false;  // what `rules` would repair is an error
  };

  explicit JsonElements(Options options);
  JsonElements(JsonElements&&) noexcept;
  JsonElements& operator=(JsonElements&&) noexcept;
  ~JsonElements();

  // Gives the next bytes of the document; they must stay valid until Next returns kNone. To be
  // called only when Next returned kNone, or first.
  void Push(std::string_view chunk);
  // No more bytes come: call Next until it returns kNone once more. To be called like Push.
  void End();
  // The next item; kBadInput where the document is malformed, and from then on.
  Result<JsonItem> Next();
  // The element that Next has just returned cannot be read. True: it may have been damaged, and
  // Next returns it again, repaired. False: there is nothing to repair.
  Result<bool> Reread();

  // The document is complete: only blanks may follow.
  bool complete() const;
  // Bytes after the document's end, from the first one that is no blank on.
  uint64_t trailing_bytes() const;
  // Bytes consumed so far.
  uint64_t offset() const;
  // Where the document stands, for messages: "byte 812, in element 3 of 'nodes'".
  std::string Where() const;
  // "name:place: found, expected"; for errors at `offset`.
  std::string Message(uint64_t offset, std::string_view what) const;
  // kRepairedEscape, kRepairedUtf8, kRepairedName and kRepairedComma.
  const Stats& stats() const;
  // "byte 812, in element 3 of 'nodes'": the first name, and the first comma, that was repaired.
  const std::string& first_name() const;
  const std::string& first_comma() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etude
