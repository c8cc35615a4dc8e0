#pragma once

#include <cstdint>

namespace etude {

// `count` products of matrices, rows × inner and inner × columns. count == 0: none.
struct ProductShape {
  int64_t count = 0;
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;

  friend bool operator==(const ProductShape&, const ProductShape&) = default;
  friend auto operator<=>(const ProductShape&, const ProductShape&) = default;
};

}  // namespace etude
