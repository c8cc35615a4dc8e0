#pragma once

#include <cstdint>
#include <initializer_list>

namespace etude {

// The product of numbers from 0 on; INT64_MAX where it does not fit.
constexpr int64_t SaturatingProduct(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return INT64_MAX;
  }
  return product;
}

}  // namespace etude
