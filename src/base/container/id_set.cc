#include "src/base/container/id_set.h"

#include "src/base/container/table_hash.h"

namespace etude {
namespace {

// Max number of dense words, plus one per inserted number, so that empty words cost no more than
// scattered numbers.
constexpr uint64_t kFirstDenseWords = 1024;

}  // namespace

// Returns true if `word` is in dense_ or dense_ was extended to include it.
bool IdSet::MakeDense(uint64_t word) {
  if (inserts_ == 0) first_word_ = word;
  const uint64_t index = word - first_word_;
  if (word < first_word_ || index >= kFirstDenseWords + inserts_) return false;
  if (index >= dense_.size()) dense_.resize(static_cast<size_t>(index) + 1);
  return true;
}

// Returns the slot of `word` in scattered_, or the slot to insert it. Requires an empty slot.
size_t IdSet::PlaceOf(uint64_t word) const {
  const size_t mask = scattered_.size() - 1;
  size_t i = TableHash(word) & mask;
  while (scattered_[i].bits != 0 && scattered_[i].number != word) i = (i + 1) & mask;
  return i;
}

void IdSet::GrowScattered() {
  std::vector<Word> old(scattered_.empty() ? 64 : scattered_.size() * 2);
  old.swap(scattered_);
  for (const Word& word : old) {
    if (word.bits != 0) scattered_[PlaceOf(word.number)] = word;
  }
}

void IdSet::Insert(uint64_t id) {
  const uint64_t word = id / kWordBits;
  const uint64_t bit = uint64_t{1} << (id % kWordBits);
  if (MakeDense(word)) {
    dense_[static_cast<size_t>(word - first_word_)] |= bit;
  } else {
    if ((scattered_count_ + 1) * 4 > scattered_.size() * 3) GrowScattered();
    Word& place = scattered_[PlaceOf(word)];
    if (place.bits == 0) ++scattered_count_;
    place.number = word;
    place.bits |= bit;
  }
  ++inserts_;
}

// Checks both: a word may have become scattered before it could be dense.
bool IdSet::Contains(uint64_t id) const {
  const uint64_t word = id / kWordBits;
  const uint64_t bit = uint64_t{1} << (id % kWordBits);
  const uint64_t index = word - first_word_;
  if (word >= first_word_ && index < dense_.size()) {
    if ((dense_[static_cast<size_t>(index)] & bit) != 0) return true;
  }
  return !scattered_.empty() && (scattered_[PlaceOf(word)].bits & bit) != 0;
}

size_t IdSet::memory_bytes() const {
  return dense_.capacity() * sizeof(uint64_t) + scattered_.capacity() * sizeof(Word);
}

}  // namespace etude
