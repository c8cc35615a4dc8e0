#include "src/sim/collective/rooted_algorithms.h"

#include <algorithm>
#include <bit>

namespace etude {
namespace {

// Place of a rank by its number, counted from the root. A rank's subtree has the numbers up to the
// rank's lowest set bit; the root's subtree has all.
class BinomialPlace {
 public:
  explicit BinomialPlace(const CollectivePhase& phase)
      : phase_(phase),
        count_(phase.members.count),
        number_((phase.members.me - phase.root + count_) % count_),
        span_(number_ == 0 ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count_)))
                           : number_ & -number_) {}

  bool is_root() const { return number_ == 0; }
  int64_t Parent() const { return RankOf(number_ - span_); }
  int64_t Bytes() const { return BytesOf(number_, span_); }
  // Visits the children, largest subtree first.
  template <typename Visit>
  void ForEachChild(Visit visit) const {
    for (int64_t step = span_ / 2; step > 0; step /= 2) {
      const int64_t child = number_ + step;
      if (child < count_) visit(RankOf(child), BytesOf(child, step));
    }
  }
  int64_t Children() const {
    int64_t children = 0;
    ForEachChild([&](int64_t, int64_t) { ++children; });
    return children;
  }

 private:
  int64_t RankOf(int64_t number) const {
    return phase_.members.RankAt((number + phase_.root) % count_);
  }
  // Returns the size of the message between a rank and its parent.
  int64_t BytesOf(int64_t number, int64_t span) const {
    const int64_t below = std::min(span, count_ - number);
    if (phase_.type == CollectiveType::kGather) return below * phase_.bytes;
    if (phase_.type == CollectiveType::kScatter) return below * (phase_.bytes / count_);
    return phase_.bytes;
  }

  const CollectivePhase& phase_;
  const int64_t count_;
  const int64_t number_;
  const int64_t span_;  // count of numbers in its subtree, including itself
};

}  // namespace

void BinomialTreeAlgorithm::Start(CollectiveStream& stream, StreamActions& actions) const {
  const BinomialPlace place(stream.phase);
  const bool down = IsFromRoot(stream.phase.type);
  const int64_t children = place.Children();
  stream.exchange.left = down ? 1 : std::max<int64_t>(1, children);
  stream.exchange.received = 0;
  if (down ? place.is_root() : children == 0) {
    return actions.Handle(stream, {.bytes = stream.phase.bytes});
  }
  if (down) return actions.Receive(stream, place.Parent(), place.Bytes(), 0);
  place.ForEachChild(
      [&](int64_t child, int64_t bytes) { actions.Receive(stream, child, bytes, 0); });
}

void BinomialTreeAlgorithm::MessageCame(CollectiveStream& stream, StreamActions& actions) const {
  const CollectivePhase& phase = stream.phase;
  const BinomialPlace place(phase);
  const bool last = ++stream.exchange.received == place.Children();
  actions.Handle(stream, {.bytes = phase.bytes,
                          .came = true,
                          .reduces = phase.type == CollectiveType::kReduce,
                          .goes_on = IsFromRoot(phase.type) ? place.Children() > 0
                                                            : last && !place.is_root()});
}

void BinomialTreeAlgorithm::Handled(CollectiveStream& stream, StreamActions& actions) const {
  if (--stream.exchange.left > 0) return;
  const BinomialPlace place(stream.phase);
  if (IsFromRoot(stream.phase.type)) {
    place.ForEachChild(
        [&](int64_t child, int64_t bytes) { actions.Send(stream, child, bytes, 0); });
  } else if (!place.is_root()) {
    actions.Send(stream, place.Parent(), place.Bytes(), 0);
  }
  actions.EndPhase(stream);
}

void DisseminationAlgorithm::Start(CollectiveStream& stream, StreamActions& actions) const {
  stream.exchange.left = 1;  // distance
  actions.Handle(stream, {});
}

void DisseminationAlgorithm::MessageCame(CollectiveStream& stream, StreamActions& actions) const {
  actions.Handle(stream,
                 {.came = true, .goes_on = stream.exchange.left < stream.phase.members.count});
}

void DisseminationAlgorithm::Handled(CollectiveStream& stream, StreamActions& actions) const {
  const PhaseMembers& members = stream.phase.members;
  const int64_t far = stream.exchange.left;
  if (far >= members.count) return actions.EndPhase(stream);
  stream.exchange.left = 2 * far;
  const int64_t ordinal = ++stream.exchanges;
  const int64_t target = members.RankAt((members.me + far) % members.count);
  const int64_t source = members.RankAt((members.me - far + members.count) % members.count);
  actions.Send(stream, target, 0, ordinal);
  actions.Receive(stream, source, 0, ordinal);
}

}  // namespace etude
