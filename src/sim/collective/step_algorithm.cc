#include "src/sim/collective/step_algorithm.h"

#include <algorithm>
#include <bit>

#include "src/base/ceil_div.h"
#include "src/sim/collective/collective_algorithms.h"

namespace etude {
namespace {

using Message = PhaseStep::Message;

int64_t LogUp(int64_t count) {
  return static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(count - 1)));
}
int64_t PowerBelow(int64_t count) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count)));
}

// A phase from the view of a member.
class Steps {
 public:
  explicit Steps(const CollectivePhase& phase)
      : phase_(phase), count_(phase.members.count), me_(phase.members.me) {}

  int64_t Count() const {
    if (count_ < 2) return 0;
    const bool both = phase_.type == CollectiveType::kAllReduce;
    switch (phase_.choice.algorithm) {
      case CollectiveAlgorithm::kBidirectionalRing: return (both ? 2 : 1) * (count_ - 1);
      case CollectiveAlgorithm::kBruck:
      case CollectiveAlgorithm::kPat: return (both ? 2 : 1) * LogUp(count_);
      case CollectiveAlgorithm::kHalvingDoubling:
        return (both ? 2 : 1) * LogUp(PowerBelow(count_)) + 2;
      case CollectiveAlgorithm::kDoubleBinaryTree: return 3;
      default: break;
    }
    // Between the root and each of the others.
    const bool rings_first = phase_.type == CollectiveType::kReduce;
    return rings_first ? count_ : 1;
  }

  PhaseStep At(int64_t step) const {
    const int64_t half = Count() / 2;
    const bool both = phase_.type == CollectiveType::kAllReduce;
    // An all-reduce is a reduce-scatter, and the steps of an all-gather of the sums.
    const bool scatters = phase_.type == CollectiveType::kReduceScatter || (both && step < half);
    const bool gathers = phase_.type == CollectiveType::kAllGather || (both && !scatters);
    const int64_t part = both || scatters ? phase_.bytes / count_ : phase_.bytes;
    const int64_t own = both && !scatters ? step - half : step;
    switch (phase_.choice.algorithm) {
      case CollectiveAlgorithm::kBidirectionalRing: return AroundBothWays(part, scatters);
      case CollectiveAlgorithm::kBruck:
        return phase_.type == CollectiveType::kAllToAll
                   ? Rotated(own)
                   : ByDistances(own, part, scatters, /*near_first=*/gathers);
      case CollectiveAlgorithm::kPat:
        return ByDistances(own, part, scatters, /*near_first=*/scatters);
      case CollectiveAlgorithm::kHalvingDoubling: return Folded(step);
      case CollectiveAlgorithm::kDoubleBinaryTree: return OfTree(step);
      default: return WithRoot(step);
    }
  }

 private:
  int64_t Around(int64_t by) const { return ((me_ + by) % count_ + count_) % count_; }

  // Half of a part each way.
  PhaseStep AroundBothWays(int64_t part, bool reduces) const {
    const int64_t ahead = CeilDiv(part, 2);
    const int64_t back = part - ahead;
    PhaseStep made{
        .sends = {{Around(1), ahead}}, .receives = {{Around(-1), ahead}}, .reduces = reduces};
    if (back > 0) {
      made.sends.push_back({Around(-1), back});
      made.receives.push_back({Around(1), back});
    }
    return made;
  }

  // An all-gather in log2(members) steps: in each, a member passes on what it has by a distance, as
  // far as it does not go around. A reduce-scatter has the same steps, back in time and direction.
  PhaseStep ByDistances(int64_t step, int64_t part, bool scatters, bool near_first) const {
    const int64_t steps = LogUp(count_);
    const int64_t gather_step = scatters ? steps - 1 - step : step;
    const bool near_first_of_gather = scatters ? !near_first : near_first;
    const auto distance_at = [&](int64_t at) {
      return int64_t{1} << (near_first_of_gather ? at : steps - 1 - at);
    };
    // Offsets of the parts that a member has, from its own.
    std::vector<int64_t> offsets = {0};
    int64_t sent = 0;
    for (int64_t at = 0; at <= gather_step; ++at) {
      const int64_t distance = distance_at(at);
      sent = 0;
      const size_t held = offsets.size();
      for (size_t i = 0; i < held; ++i) {
        if (offsets[i] + distance >= count_) continue;
        offsets.push_back(offsets[i] + distance);
        ++sent;
      }
    }
    const int64_t distance = distance_at(gather_step);
    const int64_t way = scatters ? -1 : 1;
    return {.sends = {{Around(way * distance), sent * part}},
            .receives = {{Around(-way * distance), sent * part}},
            .reduces = scatters};
  }

  // Bruck's all-to-all: the parts for members at distances with a bit of the step go that far.
  PhaseStep Rotated(int64_t step) const {
    const int64_t bit = int64_t{1} << step;
    int64_t parts = 0;
    for (int64_t distance = bit; distance < count_; ++distance)
      parts += (distance & bit) != 0 ? 1 : 0;
    const int64_t bytes = parts * (phase_.bytes / count_);
    return {.sends = {{Around(bit), bytes}}, .receives = {{Around(-bit), bytes}}, .reduces = false};
  }

  // Halving and doubling among the largest power of two: each member beyond it gives its data to
  // one of the first members before, and gets its result after (Rabenseifner 2004).
  PhaseStep Folded(int64_t step) const {
    const int64_t core = PowerBelow(count_);
    const int64_t rest = count_ - core;
    const bool gathers = phase_.type == CollectiveType::kAllGather;
    const bool scatters = phase_.type == CollectiveType::kReduceScatter;
    const int64_t whole = gathers ? count_ * phase_.bytes : phase_.bytes;
    const int64_t part = gathers ? phase_.bytes : phase_.bytes / count_;
    const int64_t last = Count() - 1;
    if (step == 0 || step == last) {
      const int64_t after = scatters ? part : gathers ? whole - phase_.bytes : whole;
      const int64_t bytes = step == 0 ? phase_.bytes : after;
      const bool is_out = me_ >= core;
      if (!is_out && me_ >= rest) return {};
      const Message message{is_out ? me_ - core : me_ + core, bytes};
      PhaseStep made{.reduces = step == 0 && !gathers};
      (is_out == (step == 0) ? made.sends : made.receives).push_back(message);
      return made;
    }
    if (me_ >= core) return {};
    const int64_t steps = LogUp(core);
    const bool doubles = gathers || step - 1 >= steps;
    const int64_t at = doubles ? (step - 1) % steps : steps - step;
    const int64_t distance = int64_t{1} << at;
    const int64_t partner = me_ ^ distance;
    // The members of a block of this size have the parts of those that gave them theirs.
    const auto parts_of = [&](int64_t member) {
      const int64_t first = member / distance * distance;
      return distance + std::clamp<int64_t>(rest - first, 0, distance);
    };
    // Doubling sends the own block. Halving sends the partner's.
    const int64_t sent = parts_of(doubles ? me_ : partner) * part;
    const int64_t received = parts_of(doubles ? partner : me_) * part;
    return {.sends = {{partner, sent}}, .receives = {{partner, received}}, .reduces = !doubles};
  }

  // Place in a binary tree in which a member's lowest set bit is its height. In the second of two
  // trees the members are mirrored or, if their number is odd, shifted by one, so that most are
  // leaves in one of the trees (Sanders, Speck and Träff 2009).
  struct Place {
    int64_t parent = -1;
    std::vector<int64_t> children;
  };
  Place PlaceInTree() const {
    const bool even = count_ % 2 == 0;
    const auto seen = [&](int64_t member) {
      if (!phase_.mirrored) return member;
      return even ? count_ - 1 - member : (member + count_ - 1) % count_;
    };
    const auto unseen = [&](int64_t number) {
      if (!phase_.mirrored) return number;
      return even ? count_ - 1 - number : (number + 1) % count_;
    };
    const int64_t number = seen(me_);
    const int64_t height = number == 0
                               ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count_)))
                               : number & -number;
    Place place;
    if (number > 0) {
      int64_t up = (number ^ height) | (height << 1);
      if (up >= count_) up = number ^ height;
      place.parent = unseen(up);
    }
    const int64_t below = height / 2;
    if (number > 0 && below > 0) place.children.push_back(unseen(number - below));
    // The subtree above the number may be smaller.
    for (int64_t step = below; step > 0; step /= 2) {
      if (number + step >= count_) continue;
      place.children.push_back(unseen(number + step));
      break;
    }
    return place;
  }
  PhaseStep OfTree(int64_t step) const {
    const Place place = PlaceInTree();
    PhaseStep made;
    if (step == 0) {
      made.reduces = true;
      for (const int64_t child : place.children) made.receives.push_back({child, phase_.bytes});
    } else if (step == 1 && place.parent >= 0) {
      made.sends.push_back({place.parent, phase_.bytes});
      made.receives.push_back({place.parent, phase_.bytes});
    } else if (step == 2) {
      for (const int64_t child : place.children) made.sends.push_back({child, phase_.bytes});
    }
    return made;
  }

  // A gather or scatter of all parts at once, or a reduce as a ring's reduce-scatter and a gather.
  PhaseStep WithRoot(int64_t step) const {
    const int64_t root = phase_.root;
    if (phase_.type == CollectiveType::kReduce && step + 1 < count_) {
      const int64_t part = phase_.bytes / count_;
      return {.sends = {{Around(1), part}}, .receives = {{Around(-1), part}}, .reduces = true};
    }
    const bool from_root = phase_.type == CollectiveType::kScatter;
    const int64_t part =
        phase_.type == CollectiveType::kGather ? phase_.bytes : phase_.bytes / count_;
    PhaseStep made;
    if (me_ != root) {
      (from_root ? made.receives : made.sends).push_back({root, part});
      return made;
    }
    for (int64_t other = 0; other < count_; ++other) {
      if (other != root) (from_root ? made.sends : made.receives).push_back({other, part});
    }
    return made;
  }

  const CollectivePhase& phase_;
  const int64_t count_;
  const int64_t me_;
};

}  // namespace

int64_t StepCountOf(const CollectivePhase& phase) { return Steps(phase).Count(); }
PhaseStep StepOf(const CollectivePhase& phase, int64_t step) { return Steps(phase).At(step); }

bool IsInSteps(const CollectivePhase& phase) {
  const AlgorithmInfo& info = Info(phase.choice.algorithm);
  if (info.only_graph && !info.in_network) return true;
  if (OwnAlgorithm(phase.type)) {
    return phase.choice.algorithm == CollectiveAlgorithm::kDirect ||
           phase.choice.algorithm == CollectiveAlgorithm::kRing;
  }
  return !info.Fits(phase.members.count);
}

void StepAlgorithm::Start(CollectiveStream& stream, StreamActions& actions) const {
  stream.exchange.received = -1;  // the step
  stream.exchange.left = 1;       // messages and own data that are not handled
  actions.Handle(stream, {.bytes = stream.phase.bytes});
}

void StepAlgorithm::MessageCame(CollectiveStream& stream, StreamActions& actions) const {
  const PhaseStep step = StepOf(stream.phase, stream.exchange.received);
  const bool is_last = stream.exchange.received + 1 == StepCountOf(stream.phase);
  actions.Handle(stream, {.bytes = step.receives.front().bytes,
                          .came = true,
                          .reduces = step.reduces,
                          .goes_on = !is_last});
}

void StepAlgorithm::Handled(CollectiveStream& stream, StreamActions& actions) const {
  ExchangeState& state = stream.exchange;
  if (--state.left > 0) return;
  const int64_t steps = StepCountOf(stream.phase);
  while (++state.received < steps) {
    const PhaseStep step = StepOf(stream.phase, state.received);
    const int64_t ordinal = stream.exchanges + state.received + 1;
    state.left = static_cast<int64_t>(step.receives.size());
    for (const PhaseStep::Message& message : step.sends) {
      actions.Send(stream, stream.phase.members.RankAt(message.member), message.bytes, ordinal);
    }
    for (const PhaseStep::Message& message : step.receives) {
      actions.Receive(stream, stream.phase.members.RankAt(message.member), message.bytes, ordinal);
    }
    if (state.left > 0) return;
  }
  stream.exchanges += steps;
  actions.EndPhase(stream);
}

}  // namespace etude
