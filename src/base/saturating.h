#pragma once

#include <cstdint>
#include <initializer_list>

namespace etude {

// Returns the product of non-negative factors, INT64_MAX on overflow.
constexpr int64_t SaturatingProduct(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return INT64_MAX;
  }
  return product;
}

}  // namespace etude
