#include "src/formats/json/bracket_scanner.h"

#include <bit>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace etude {
namespace {

constexpr size_t kBlock = 64;

// One bit per byte of a block.
struct BlockMasks {
  uint64_t quotes = 0;
  uint64_t backslashes = 0;
  uint64_t brackets = 0;
  uint64_t controls = 0;   // below 0x20
  uint64_t non_ascii = 0;  // from 0x80
};

#if defined(__SSE2__)
BlockMasks MaskBlock(const char* data) {
  BlockMasks masks;
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i open = _mm_set1_epi8('{');
  const __m128i close = _mm_set1_epi8('}');
  const __m128i case_bit = _mm_set1_epi8(0x20);  // turns [ and ] into { and }
  const __m128i last_control = _mm_set1_epi8(0x1F);
  for (unsigned part = 0; part < kBlock / 16; ++part) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + part * 16));
    const auto bits = [part](__m128i mask) {
      return uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(mask))} << (part * 16);
    };
    const __m128i folded = _mm_or_si128(bytes, case_bit);
    masks.quotes |= bits(_mm_cmpeq_epi8(bytes, quote));
    masks.backslashes |= bits(_mm_cmpeq_epi8(bytes, backslash));
    masks.brackets |=
        bits(_mm_or_si128(_mm_cmpeq_epi8(folded, open), _mm_cmpeq_epi8(folded, close)));
    masks.controls |= bits(_mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes));
    masks.non_ascii |= bits(bytes);
  }
  return masks;
}
#else
BlockMasks MaskBlock(const char* data) {
  BlockMasks masks;
  for (unsigned i = 0; i < kBlock; ++i) {
    const auto c = static_cast<unsigned char>(data[i]);
    masks.quotes |= uint64_t{c == '"'} << i;
    masks.backslashes |= uint64_t{c == '\\'} << i;
    masks.brackets |= uint64_t{(c | 0x20) == '{' || (c | 0x20) == '}'} << i;
    masks.controls |= uint64_t{c < 0x20} << i;
    masks.non_ascii |= uint64_t{c >= 0x80} << i;
  }
  return masks;
}
#endif

// Returns a word with bit i set if the number of bits up to and including i is odd.
uint64_t PrefixXor(uint64_t bits) {
  for (unsigned shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

}  // namespace

void BracketScanner::Reset() {
  state_ = State::kOpen;
  depth_ = 0;
  in_string_ = false;
  escaped_ = false;
  saw_backslash_ = false;
  saw_control_ = false;
  saw_non_ascii_ = false;
}

bool BracketScanner::Bracket(char c) {
  if (c == '{' || c == '[') {
    if (depth_ >= max_depth_) {
      state_ = State::kTooDeep;
      return false;
    }
    closers_[depth_++] = c == '{' ? '}' : ']';
    return true;
  }
  if (depth_ == 0 || closers_[depth_ - 1] != c) {
    state_ = State::kMismatch;
    return false;
  }
  if (--depth_ == 0) state_ = State::kClosed;
  return depth_ != 0;
}

size_t BracketScanner::ScanBytes(const char* data, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const char c = data[i];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) saw_non_ascii_ = true;
    if (in_string_) {
      if (byte < 0x20) saw_control_ = true;
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
        saw_backslash_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '}' || c == '[' || c == ']') {
      if (!Bracket(c)) return state_ == State::kClosed ? i + 1 : i;
    }
  }
  return count;
}

size_t BracketScanner::Scan(std::string_view text) {
  size_t position = 0;
  while (text.size() - position >= kBlock) {
    const char* data = text.data() + position;
    const BlockMasks masks = MaskBlock(data);
    if (masks.backslashes != 0 || escaped_) {
      const size_t taken = ScanBytes(data, kBlock);
      position += taken;
      if (state_ != State::kOpen) return position;
      if (saw_control_ && stops_at_control_) return position;
      continue;
    }
    // A string's opening quote counts as inside, its closing one does not.
    const uint64_t inside = PrefixXor(masks.quotes) ^ (in_string_ ? ~uint64_t{0} : 0);
    for (uint64_t left = masks.brackets & ~inside; left != 0; left &= left - 1) {
      const auto at = static_cast<size_t>(std::countr_zero(left));
      if (Bracket(data[at])) continue;
      // Ignores bytes after the end.
      const uint64_t ours = (uint64_t{1} << at) - 1;
      if ((masks.controls & inside & ours) != 0) saw_control_ = true;
      if ((masks.non_ascii & ours) != 0) saw_non_ascii_ = true;
      in_string_ = false;
      return position + at + (state_ == State::kClosed ? 1 : 0);
    }
    if ((masks.controls & inside) != 0) saw_control_ = true;
    if (masks.non_ascii != 0) saw_non_ascii_ = true;
    in_string_ = (inside >> (kBlock - 1)) != 0;
    position += kBlock;
    if (saw_control_ && stops_at_control_) return position;
  }
  return position + ScanBytes(text.data() + position, text.size() - position);
}

}  // namespace etude
