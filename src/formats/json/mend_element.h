#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace etude {

// How a format writes the elements of its list, which are objects.
struct ElementRules {
  std::span<const std::string_view> keys;        // that an element may have
  std::span<const std::string_view> after_name;  // those that writers put right behind the name
  std::string_view first;                        // the usual first key
  std::string_view required;                     // no element lacks this key
};

// What became of an element that could not be cut or parsed as it is.
struct MendedElement {
  enum class Outcome : uint8_t {
    kMore,     // more bytes are needed
    kWhole,    // it is valid JSON, and the list goes on behind it
    kMended,   // `text` is what it was meant to be
    kLost,     // unreadable; the list goes on behind its `length` bytes
    kCut,      // the last bytes: no end was found
    kTooDeep,  // more brackets are open than allowed
  };

  Outcome outcome = Outcome::kMore;
  // kMore, kCut: nothing is wrong with what is there.
  bool is_clean = false;
  size_t length = 0;   // of the element in the bytes
  std::string text{};  // kMended
  // kMended: texts whose quotation marks were not escaped; commas left out and put in.
  uint64_t quotes = 0;
  uint64_t commas = 0;
  size_t first_repair = 0;  // kMended: its place in the bytes
};

// Reads the element that `bytes` begin with: some writers do not escape quotation marks in names,
// or write commas too many or too few. A name ends at a quotation mark that a key of the element
// follows, if what is behind it is valid to the element's end. `last`: no more bytes come. Time is
// linear in the element but for a bounded number of attempts.
MendedElement MendElement(std::string_view bytes, bool last, const ElementRules& rules,
                          size_t max_depth);

// Whether the element that `bytes` begin with seems to have ended in them: another one follows
// somewhere. A quotation mark too many hides the end of an element from who looks for brackets.
bool HoldsNextElement(std::string_view bytes, const ElementRules& rules);

}  // namespace etude
