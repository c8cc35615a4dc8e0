#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

// Classification of bytes in JSON texts.
namespace etude::compat {

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsBlank(char c) {
  return static_cast<uint8_t>(c) <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
}

inline const char* SkipManyBlanks(const char* at, const char* end) {
#if defined(__SSE2__)
  while (end - at >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i blank = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')),
                                                    _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'))),
                                       _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r')),
                                                    _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'))));
    const auto mask = static_cast<uint32_t>(_mm_movemask_epi8(blank));
    if (mask != 0xFFFF) return at + std::countr_one(mask);
    at += 16;
  }
#endif
  while (at != end && IsBlank(*at)) ++at;
  return at;
}

// Fast path for at most one blank, the usual case.
inline const char* SkipBlanksFrom(const char* at, const char* end) {
  if (at == end || !IsBlank(*at)) return at;
  ++at;
  if (at == end || !IsBlank(*at)) return at;
  return SkipManyBlanks(at, end);
}

// Returns the first quote, backslash or control byte at or after `at`, or `end`.
inline const char* FindStringStop(const char* at, const char* end) {
#if defined(__SSE2__)
  while (end - at >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
    const __m128i stop =
        _mm_or_si128(control, _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                           _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));
    const auto mask = static_cast<uint32_t>(_mm_movemask_epi8(stop));
    if (mask != 0) return at + std::countr_zero(mask);
    at += 16;
  }
#endif
  while (at != end && *at != '"' && *at != '\\' && static_cast<uint8_t>(*at) > 0x1F) ++at;
  return at;
}

// Returns the digit's value, or -1 if it is not hexadecimal.
inline int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace etude::compat
