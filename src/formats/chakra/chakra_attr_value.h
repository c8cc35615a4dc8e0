#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/formats/chakra/chakra_schema.h"

namespace etude::chakra {

// Value of an attribute.
struct AttrValue {
  enum class Form : uint8_t {
    kNone,      // no value, or one of an unsupported type
    kSigned,    // `bits` is an int64
    kUnsigned,  // `bits` is an uint64
    kDouble,
    kText,
    kInts,
  };

  ValueType type = ValueType::kNone;
  Form form = Form::kNone;
  uint64_t bits = 0;
  double real = 0;
  std::string_view text;
  std::vector<int64_t> ints;

  // Return the value if it is a whole number that fits.
  std::optional<int64_t> AsInt64() const;
  std::optional<uint64_t> AsUint64() const;
};

}  // namespace etude::chakra
