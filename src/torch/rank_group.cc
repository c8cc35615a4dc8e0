#include "src/torch/rank_group.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

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
    const std::string_view what = error.what();
    return MakeError(ErrorCode::kInternal,
                     "meeting the other ranks: " + std::string(what.substr(0, what.find('\n'))));
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
    return MakeError(ErrorCode::kUnavailable, "no local socket for the ranks to meet: " + reason);
  }
  return MeetingPlace{.listener = listener, .port = ntohs(address.sin_port)};
}

struct RankGroup::Impl {
  Member member;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  c10::IValue group_value;
  c10::IValue sum_value;
  c10::intrusive_ptr<c10d::Store> store;
  int64_t meetings = 0;
};

RankGroup::RankGroup(const Member& member) : impl_(std::make_unique<Impl>()) {
  impl_->member = member;
  impl_->group = c10::make_intrusive<c10d::ProcessGroup>(static_cast<int>(member.rank),
                                                         static_cast<int>(member.size));
  impl_->group_value = impl_->group;
  impl_->sum_value = c10::make_intrusive<c10d::ReduceOp>(c10d::ReduceOp::SUM);
}

RankGroup::~RankGroup() = default;

int64_t RankGroup::rank() const { return impl_->member.rank; }
int64_t RankGroup::size() const { return impl_->member.size; }
const c10::IValue& RankGroup::process_group() const { return impl_->group_value; }
const c10::IValue& RankGroup::sum() const { return impl_->sum_value; }

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
  }));
  // Ranks take different times to get here; from now on the time-out holds.
  ETUDE_RETURN_IF_ERROR(Meet());
  return Caught([&] {
    auto options = c10d::ProcessGroupGloo::Options::create(member.timeout);
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(kLoopback));
    const auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>("gloo", impl_->store), static_cast<int>(member.rank),
        static_cast<int>(member.size), options);
    impl_->group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
  });
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

void WaitForWork(const c10::IValue& work) { work.toCustomClass<c10d::Work>()->wait(); }

}  // namespace etude
