#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace etude {

// Format of the elements of a list, which are objects.
struct ElementRules {
  std::span<const std::string_view> keys;        // allowed keys
  std::span<const std::string_view> after_name;  // keys that writers put directly after the name
  std::string_view first;                        // usual first key
  std::string_view required;                     // key of every element
};

// Result for an element that could not be extracted or parsed unchanged.
struct MendedElement {
  enum class Outcome : uint8_t {
    kMore,     // more bytes are needed
    kWhole,    // valid JSON, and the list continues after it
    kMended,   // repaired in `text`
    kLost,     // unreadable; the list continues after its `length` bytes
    kCut,      // the input ended within the element
    kTooDeep,  // more brackets are open than allowed
  };

  Outcome outcome = Outcome::kMore;
  // kMore, kCut: the bytes so far are valid.
  bool is_clean = false;
  size_t length = 0;   // of the element in the bytes
  std::string text{};  // kMended
  // kMended: numbers of texts with unescaped quotation marks, and of commas removed or added.
  uint64_t quotes = 0;
  uint64_t commas = 0;
  size_t first_repair = 0;  // kMended: its position in the bytes
};

// Repairs the element at the beginning of `bytes`. Some writers do not escape quotation marks in
// names, or write extra or too few commas. A name ends at a quotation mark followed by a key of the
// element, if the rest is valid to the element's end. `last`: no more bytes come. Linear time in
// the element's size, except for a bounded number of attempts.
MendedElement MendElement(std::string_view bytes, bool last, const ElementRules& rules,
                          size_t max_depth);

// Returns true if the element at the beginning of `bytes` appears to have ended, because another
// one follows. An extra quotation mark hides the end of an element from a search for brackets.
bool HoldsNextElement(std::string_view bytes, const ElementRules& rules);

}  // namespace etude
