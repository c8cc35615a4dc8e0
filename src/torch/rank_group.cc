#include "src/torch/rank_group.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "src/torch/error_text.h"

namespace etude {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
// Whoever starts the ranks ends them when one dies, so none has to give up by itself.
constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 30);

template <typename Fn>
Status Caught(Fn fn) {
  try {
    fn();
    return {};
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kInternal, "meeting the other ranks: " + FirstLine(error.what()));
  }
}

}  // namespace

Result<MeetingPlace> MeetingPlace::Open() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  // The interface of sockets asks for this cast.
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  constexpr int kWaiting = 4096;
  if (listener < 0 || bind(listener, generic, length) != 0 || listen(listener, kWaiting) != 0 ||
      getsockname(listener, generic, &length) != 0) {
    const std::string reason = std::strerror(errno);
    if (listener >= 0) close(listener);
    return Unavailable("no local socket for the ranks to meet: " + reason);
  }
  return MeetingPlace{.listener = listener, .port = ntohs(address.sin_port)};
}

// A process group of the job. By ranks first: all ranks make groups in one order, so that none
// waits for a rank that waits for it.
struct RankGroup::Impl {
  using Key = std::pair<std::vector<int64_t>, std::string>;

  Member member;
  std::map<Key, c10::intrusive_ptr<c10d::ProcessGroup>> groups;
  std::map<std::string, Key> by_name;
  c10::intrusive_ptr<c10d::Store> store;
  int64_t meetings = 0;

  Status CheckAgreement(const Key& key) const;
  void MakeGloo(const Key& key, c10d::ProcessGroup& group) const;
};

namespace {

std::string JoinedRanks(const std::vector<int64_t>& ranks) {
  std::string text;
  for (const int64_t rank : ranks) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

// Under which a rank says that it asks for a group.
std::string GroupKey(int64_t rank, const std::pair<std::vector<int64_t>, std::string>& group) {
  return "group/" + std::to_string(rank) + "/" + JoinedRanks(group.first) + "/" + group.second;
}

}  // namespace

RankGroup::RankGroup(const Member& member) : impl_(std::make_unique<Impl>()) {
  impl_->member = member;
}

RankGroup::~RankGroup() {
  for (const auto& [name, key] : impl_->by_name) c10d::unregister_process_group(name);
}

int64_t RankGroup::rank() const { return impl_->member.rank; }
int64_t RankGroup::size() const { return impl_->member.size; }

Result<c10::IValue> RankGroup::Group(const std::string& name, const std::vector<int64_t>& ranks) {
  const Impl::Key key(ranks, name);
  if (const auto known = impl_->by_name.find(name); known != impl_->by_name.end()) {
    if (known->second == key) return c10::IValue(impl_->groups.at(key));
    return Unavailable("the process group '" + name + "' stands for several in the trace");
  }
  std::set<int64_t> distinct(ranks.begin(), ranks.end());
  const auto own = std::ranges::find(ranks, rank());
  if (distinct.size() != ranks.size() || own == ranks.end() || *distinct.begin() < 0 ||
      *distinct.rbegin() >= size()) {
    return Unavailable("the trace gives the process group '" + name + "' ranks that cannot be");
  }
  auto group = c10::make_intrusive<c10d::ProcessGroup>(static_cast<int>(own - ranks.begin()),
                                                       static_cast<int>(ranks.size()));
  c10d::register_process_group(name, group);
  impl_->by_name.emplace(name, key);
  impl_->groups.emplace(key, group);
  return c10::IValue(std::move(group));
}

// Whether all ranks of the group have asked for it, after all have said what they ask for.
Status RankGroup::Impl::CheckAgreement(const Key& key) const {
  const auto& [ranks, name] = key;
  for (const int64_t rank : ranks) {
    if (store->check({GroupKey(rank, key)})) continue;
    return BadInput("the process group '" + name + "' is of ranks " + JoinedRanks(ranks) +
                    ", but rank " + std::to_string(rank) +
                    " has no collective in it that can be replayed");
  }
  return {};
}

void RankGroup::Impl::MakeGloo(const Key& key, c10d::ProcessGroup& group) const {
  const auto& [ranks, name] = key;
  auto options = c10d::ProcessGroupGloo::Options::create(member.timeout);
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(kLoopback));
  options->global_ranks_in_group.assign(ranks.begin(), ranks.end());
  options->group_name = name;
  const auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>("gloo/" + JoinedRanks(ranks) + "/" + name, store),
      group.getRank(), group.getSize(), options);
  group.setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
  group.setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  group.setGroupName(name);
}

Status RankGroup::Connect() {
  const Member& member = impl_->member;
  ETUDE_RETURN_IF_ERROR(Caught([&] {
    c10d::TCPStoreOptions options;
    options.port = member.place.port;
    options.waitWorkers = false;
    options.timeout = kForever;
    if (member.rank == member.lead) {
      options.isServer = true;
      options.masterListenFd = member.place.listener;
    }
    impl_->store = c10::make_intrusive<c10d::TCPStore>(kLoopback, options);
    for (const auto& [key, group] : impl_->groups) {
      impl_->store->set(GroupKey(member.rank, key), std::string());
    }
  }));
  // Ranks take different times to get here; from now on the time-out holds.
  ETUDE_RETURN_IF_ERROR(Meet());
  for (const auto& [key, group] : impl_->groups) {
    Status agreed;
    ETUDE_RETURN_IF_ERROR(Caught([&] { agreed = impl_->CheckAgreement(key); }));
    ETUDE_RETURN_IF_ERROR(agreed);
  }
  for (const auto& [key, group] : impl_->groups) {
    ETUDE_RETURN_IF_ERROR(Caught([&] { impl_->MakeGloo(key, *group); }));
  }
  return {};
}

Status RankGroup::Meet() {
  return Caught([&] {
    const std::string key = "meeting/" + std::to_string(impl_->meetings++);
    if (impl_->store->add(key, 1) == size()) impl_->store->set(key + "/all", std::string());
    impl_->store->wait({key + "/all"}, kForever);
  });
}

Status RankGroup::Tell(std::string_view bytes) {
  return Caught([&] {
    impl_->store->set("told/" + std::to_string(rank()),
                      std::vector<uint8_t>(bytes.begin(), bytes.end()));
  });
}

Result<std::string> RankGroup::ToldBy(int64_t rank) {
  std::string told;
  ETUDE_RETURN_IF_ERROR(Caught([&] {
    const std::vector<uint8_t> bytes = impl_->store->get("told/" + std::to_string(rank));
    told.assign(bytes.begin(), bytes.end());
  }));
  return told;
}

c10::IValue MakeReduction(uint8_t number) {
  return c10::make_intrusive<c10d::ReduceOp>(static_cast<c10d::ReduceOp::RedOpType>(number));
}

void WaitForWork(const c10::IValue& work) { work.toCustomClass<c10d::Work>()->wait(); }

}  // namespace etude
