#include "src/base/text/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "src/base/text/utf8.h"

namespace etude {

bool IsAsciiWithout(std::string_view text, char a, char b) {
  const char* at = text.data();
  const char* end = at + text.size();
#if defined(__SSE2__)
  while (end - at >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    // As signed bytes, non-ASCII ones are below ' ', too.
    const __m128i bad = _mm_or_si128(_mm_or_si128(_mm_cmplt_epi8(bytes, _mm_set1_epi8(' ')),
                                                  _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7F))),
                                     _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(a)),
                                                  _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b))));
    if (_mm_movemask_epi8(bad) != 0) return false;
    at += 16;
  }
#endif
  for (; at != end; ++at) {
    const auto byte = static_cast<uint8_t>(*at);
    if (byte < ' ' || byte > '~' || *at == a || *at == b) return false;
  }
  return true;
}

void PutHex(uint32_t code, int digits, ByteBuffer& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (int i = digits - 1; i >= 0; --i) out.Put(kHex[(code >> (4 * i)) & 0xF]);
}

void PutJsonCode(uint32_t code, ByteBuffer& out) {
  switch (code) {
    case '"': out.Put("\\\""); return;
    case '\\': out.Put("\\\\"); return;
    case '\n': out.Put("\\n"); return;
    case '\r': out.Put("\\r"); return;
    case '\t': out.Put("\\t"); return;
    case '\f': out.Put("\\f"); return;
    case '\b': out.Put("\\b"); return;
    default: break;
  }
  if (code >= ' ' && code <= '~') {
    out.Put(static_cast<char>(code));
  } else if (code < 0x10000) {
    out.Put("\\u");
    PutHex(code, 4, out);
  } else {
    out.Put("\\u");
    PutHex(0xD800 + ((code - 0x10000) >> 10), 4, out);
    out.Put("\\u");
    PutHex(0xDC00 + ((code - 0x10000) & 0x3FF), 4, out);
  }
}

void AppendJsonText(std::string_view text, ByteBuffer& out) {
  if (IsAsciiWithout(text, '\\', '"')) {
    out.Append(text);
    return;
  }
  out.Ensure(text.size() * 6);
  while (!text.empty()) {
    const utf8::Point point = utf8::First(text).value_or(utf8::Point{.code = 0xFFFD, .length = 1});
    PutJsonCode(point.code, out);
    text.remove_prefix(point.length);
  }
}

void AppendJsonFloat(double value, ByteBuffer& out) {
  if (std::isnan(value)) {
    out.Append("NaN");
    return;
  }
  if (std::isinf(value)) {
    out.Append(value < 0 ? "-Infinity" : "Infinity");
    return;
  }
  out.Ensure(40);
  const double size = std::fabs(value);
  if (size >= 1e-4 && size < 1e16) {
    // Fixed notation with the shortest digits; integers get Python's ".0".
    char* begin = out.end();
    const auto [end, error] = std::to_chars(begin, begin + 40, value, std::chars_format::fixed);
    const bool whole = std::find(begin, end, '.') == end;
    out.set_end(end);
    if (whole) out.Append(".0");
    return;
  }
  if (value == 0) {
    out.Put(std::signbit(value) ? "-0.0" : "0.0");
    return;
  }
  char* begin = out.end();
  const auto [end, error] = std::to_chars(begin, begin + 40, value, std::chars_format::scientific);
  out.set_end(end);
}

}  // namespace etude
