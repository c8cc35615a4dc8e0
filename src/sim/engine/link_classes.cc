#include "src/sim/engine/link_classes.h"

#include "src/sim/machine/link_faults.h"

namespace etude {

LinkClasses::LinkClasses(const SimMachine& machine) {
  std::vector<Signature> signatures;
  if (machine.graph != nullptr) {
    routes_.emplace(*machine.graph);
    for (const NetworkLink& link : machine.graph->links()) {
      Signature& one = signatures.emplace_back();
      one.Add(link.rate());
      one.Add(link.latency);
    }
  } else {
    queued_.emplace(machine);
    const LinkFaults faults(machine);
    signatures.resize(queued_->count());
    for (uint32_t link = 0; !faults.empty() && link < signatures.size(); ++link) {
      signatures[link].Add(queued_->FaultOf(link, faults));
    }
  }
  count_ = NumberSignatures(signatures, classes_);
}

void LinkClasses::FindPath(int64_t from, int64_t to) {
  if (routes_) return routes_->Find(from, to, nullptr, hops_);
  for (int64_t at = from; at != to;) {
    const auto [link, next] = queued_->Next(at, from, to);
    hops_.push_back(link);
    at = next;
  }
}

bool LinkClasses::AddRank(std::span<const int64_t> partners) {
  const auto rank = static_cast<int64_t>(rank_ends_.size());
  for (const int64_t partner : partners) {
    FindPath(rank, partner);
    path_ends_.push_back(hops_.size());
    if (hops_.size() > kMostHops) return false;
  }
  rank_ends_.push_back(path_ends_.size());
  return true;
}

template <typename Visit>
void LinkClasses::ForEachHop(const Visit& visit) const {
  size_t path = 0;
  size_t hop = 0;
  for (size_t rank = 0; rank < rank_ends_.size(); ++rank) {
    for (size_t place = 0; path < rank_ends_[rank]; ++path, ++place) {
      for (size_t step = 0; hop < path_ends_[path]; ++hop, ++step) {
        visit(rank, place, step, hops_[hop]);
      }
    }
  }
}

size_t LinkClasses::Refine(std::span<const uint32_t> rank_classes,
                           std::vector<Signature>& signatures) {
  std::vector<Signature> messages(classes_.size());
  ForEachHop([&](size_t rank, size_t place, size_t step, uint32_t link) {
    signatures[rank].Add(uint64_t{place} << 32 | classes_[link]);
    Signature message;
    message.Add(uint64_t{place} << 32 | rank_classes[rank]);
    message.Add(uint64_t{step});
    messages[link].AddUnordered(message);
  });
  std::vector<Signature> links(classes_.size());
  for (size_t link = 0; link < links.size(); ++link) {
    links[link].Add(uint64_t{classes_[link]});
    links[link].Add(messages[link]);
    if (!queued_) continue;
    // The device that handles the messages which wait for the link.
    const int64_t device = queued_->OwnerOf(static_cast<uint32_t>(link));
    links[link].Add(uint64_t{rank_classes[static_cast<size_t>(device)]});
  }
  return count_ = NumberSignatures(links, classes_);
}

bool LinkClasses::QueuesFit(std::span<const uint32_t> rank_classes) const {
  if (!queued_) return true;
  std::vector<size_t> links(count_);
  for (const uint32_t one : classes_) ++links[one];
  std::vector<size_t> ranks(rank_classes.size());
  for (const uint32_t one : rank_classes) ++ranks[one];
  bool fit = true;
  ForEachHop([&](size_t rank, size_t /*place*/, size_t /*step*/, uint32_t link) {
    fit = fit && links[classes_[link]] == ranks[rank_classes[rank]];
  });
  return fit;
}

}  // namespace etude
