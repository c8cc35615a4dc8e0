#include "src/sim/collective/tree_algorithm.h"

namespace etude {
namespace {

void PlaceInTree(const PhaseMembers& members, bool second, TreeState& state) {
  const int64_t root = second ? 0 : members.count - 1;
  const int64_t first = second ? 1 : 0;  // first number of the perfect tree below the root
  const int64_t top = first + members.count / 2 - 1;
  state.parent = state.child[0] = state.child[1] = -1;
  if (members.me == root) {
    state.role = TreeState::Role::kRoot;
    state.child[0] = top;
    return;
  }
  // In-order numbering: the lowest set bit of number + 1 determines the height.
  const int64_t number = members.me - first + 1;
  const int64_t low = number & -number;
  state.role = low == 1 ? TreeState::Role::kLeaf : TreeState::Role::kInner;
  const int64_t up = ((number & (2 * low)) != 0 ? number - low : number + low);
  state.parent = members.me == top ? root : first + up - 1;
  if (low > 1) {
    state.child[0] = members.me - low / 2;
    state.child[1] = members.me + low / 2;
  }
}

void SendToMember(const CollectiveStream& stream, int64_t index, StreamActions& actions) {
  actions.Send(stream, stream.phase.members.RankAt(index), stream.tree.bytes, 0);
}
void ReceiveFromMember(const CollectiveStream& stream, int64_t index, StreamActions& actions) {
  actions.Receive(stream, stream.phase.members.RankAt(index), stream.tree.bytes, 0);
}

}  // namespace

void TreeAlgorithm::Start(CollectiveStream& stream, StreamActions& actions) const {
  TreeState& state = stream.tree;
  state.step = state.came = 0;
  state.bytes = stream.phase.bytes;
  PlaceInTree(stream.phase.members, stream.phase.mirrored, state);
  switch (state.role) {
    case TreeState::Role::kLeaf: actions.Handle(stream, {.bytes = state.bytes}); break;
    case TreeState::Role::kInner:
      ReceiveFromMember(stream, state.child[0], actions);
      ReceiveFromMember(stream, state.child[1], actions);
      break;
    case TreeState::Role::kRoot: ReceiveFromMember(stream, state.child[0], actions); break;
  }
}

void TreeAlgorithm::MessageCame(CollectiveStream& stream, StreamActions& actions) const {
  TreeState& state = stream.tree;
  const bool first_of_two = ++state.came == 1 && state.role == TreeState::Role::kInner;
  const bool leaf = state.role == TreeState::Role::kLeaf;
  actions.Handle(
      stream,
      {.bytes = state.bytes, .came = true, .reduces = !leaf, .goes_on = !leaf && !first_of_two});
}

void TreeAlgorithm::Handled(CollectiveStream& stream, StreamActions& actions) const {
  TreeState& state = stream.tree;
  const int step = state.step++;
  switch (state.role) {
    case TreeState::Role::kLeaf:
      if (step > 0) return actions.EndPhase(stream);
      SendToMember(stream, state.parent, actions);
      ReceiveFromMember(stream, state.parent, actions);
      break;
    case TreeState::Role::kInner:
      if (step == 1) {  // both children's messages are added
        SendToMember(stream, state.parent, actions);
        ReceiveFromMember(stream, state.parent, actions);
      } else if (step == 2) {
        SendToMember(stream, state.child[0], actions);
        SendToMember(stream, state.child[1], actions);
        actions.EndPhase(stream);
      }
      break;
    case TreeState::Role::kRoot:
      SendToMember(stream, state.child[0], actions);
      actions.EndPhase(stream);
      break;
  }
}

}  // namespace etude
