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
    kElement,  // element of the array `key`
    kMember,   // top-level member other than the array
    kArray,    // beginning of the array `key`
  };

  Kind kind = Kind::kNone;
  std::string_view key{};   // unescaped; "" for the elements of a top-level array
  std::string_view text{};  // JSON text, followed by kPadding readable bytes
  uint64_t offset = 0;      // of the text's first byte in the document
  uint64_t index = 0;       // kElement: index in the array
};

// Extracts the elements of one array from a JSON document that arrives in chunks of any size, with
// memory for only the largest element. The document is an object with the array as a member, or, if
// allowed, the array itself.
//
// Checks the grammar outside the elements; inside them, that brackets match and strings end; and
// the limits `depth` and `element_bytes`. Repairs and counts invalid escapes, raw control bytes in
// strings, lone surrogates and invalid UTF-8; with rules for the elements also names with unescaped
// quotation marks, and extra or missing commas. Readers must check the contents of elements. Not
// thread-safe.
class JsonElements {
 public:
  static constexpr size_t kPadding = 64;

  struct Options {
    std::string name;                     // of the file, for messages
    std::vector<std::string> array_keys;  // the array is the first member with one of these keys
    bool bare_array = false;              // the document may be the array itself
    Limits limits;
    // Format of the elements, for repairs; static. Null: no such repairs.
    const ElementRules* rules = nullptr;
    bool strict = false;  // repairs by `rules` are errors
  };

  explicit JsonElements(Options options);
  JsonElements(JsonElements&&) noexcept;
  JsonElements& operator=(JsonElements&&) noexcept;
  ~JsonElements();

  // Passes the next bytes of the document, which must stay valid until Next returns kNone. To be
  // called first, and then only after Next returned kNone.
  void Push(std::string_view chunk);
  // Ends the input: call Next until it returns kNone once more. To be called like Push.
  void End();
  // Returns the next item; kBadInput from the first malformed place on.
  Result<JsonItem> Next();
  // Reports that the last element cannot be parsed. Returns true if it may be damaged: Next then
  // returns it again, repaired. Returns false if there is nothing to repair.
  Result<bool> Reread();

  // Returns true if the document is complete: only blanks may follow.
  bool complete() const;
  // Returns the number of bytes after the document's end, from the first non-blank one on.
  uint64_t trailing_bytes() const;
  // Returns the number of bytes consumed so far.
  uint64_t offset() const;
  // Returns the position in the document, for messages: "byte 812, in element 3 of 'nodes'".
  std::string Where() const;
  // Returns "name:place: found, expected" for errors at `offset`.
  std::string Message(uint64_t offset, std::string_view what) const;
  // Counts of kRepairedEscape, kRepairedUtf8, kRepairedName and kRepairedComma.
  const Stats& stats() const;
  // Return the place of the first repaired name and of the first repaired comma, as "byte 812, in
  // element 3 of 'nodes'".
  const std::string& first_name() const;
  const std::string& first_comma() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etude
