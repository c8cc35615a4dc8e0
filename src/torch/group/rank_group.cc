#include "src/torch/group/rank_group.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "src/analysis/comm/comm_match.h"
#include "src/base/exit_code.h"
#include "src/replay/rank_messages.h"
#include "src/replay/stuck_ranks.h"
#include "src/torch/error_text.h"
#include "src/torch/group/emulated_group.h"
#include "src/torch/group/nccl_group.h"

namespace etude {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr int kEndedByOthers = static_cast<int>(ExitCode::kInternal);
// The launcher ends all ranks when one dies, so no rank has to give up by itself.
constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 30);
// Maximum wait of individually started ranks for the lead.
constexpr std::chrono::milliseconds kConnecting = std::chrono::minutes(5);
// Maximum wait of a stuck rank for the status of the others, and of these for its diagnosis.
constexpr std::chrono::milliseconds kAsking{3000};
constexpr std::chrono::milliseconds kAnswering{10'000};

template <typename Fn>
Status Caught(Fn fn) {
  try {
    fn();
    return {};
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kInternal,
                     "connecting to the other ranks: " + FirstLine(error.what()));
  }
}

// Returns this process's sockets that are connected to `port` of any machine.
std::set<int> SocketsTo(uint16_t port) {
  std::set<int> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int socket = std::atoi(entry.path().filename().c_str());
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    // The socket API requires these casts.
    if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &length) != 0) continue;
    in_port_t found = 0;
    if (peer.ss_family == AF_INET) found = reinterpret_cast<sockaddr_in*>(&peer)->sin_port;
    if (peer.ss_family == AF_INET6) found = reinterpret_cast<sockaddr_in6*>(&peer)->sin6_port;
    if (found == htons(port)) sockets.insert(socket);
  }
  return sockets;
}

// A connection to the store. The store limits the wait for a key, but not for an answer: a stopped
// host never answers, which only a limit on the sockets detects.
struct Connection {
  c10::intrusive_ptr<c10d::Store> store;
  std::set<int> sockets;

  // Makes longer waits for an answer fail.
  void LimitAnswers(std::chrono::milliseconds limit) const {
    const timeval time{.tv_sec = limit.count() / 1000, .tv_usec = limit.count() % 1000 * 1000};
    for (const int socket : sockets) {
      setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
      setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    }
  }
  // Makes pending waits fail.
  void Close() const {
    for (const int socket : sockets) shutdown(socket, SHUT_RDWR);
  }
};

}  // namespace

Result<MeetingPlace> MeetingPlace::Open() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  // The socket API requires this cast.
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  constexpr int kWaiting = 4096;
  if (listener < 0 || bind(listener, generic, length) != 0 || listen(listener, kWaiting) != 0 ||
      getsockname(listener, generic, &length) != 0) {
    const std::string reason = std::strerror(errno);
    if (listener >= 0) close(listener);
    return Unavailable("cannot open a local socket for the ranks: " + reason);
  }
  return MeetingPlace{.port = ntohs(address.sin_port), .listener = listener};
}

// Process groups of the job, keyed by ranks first: all ranks make groups in one order, which avoids
// deadlocks.
struct RankGroup::Impl {
  using Key = std::pair<std::vector<int64_t>, std::string>;

  Member member;
  std::map<Key, c10::intrusive_ptr<c10d::ProcessGroup>> groups;
  std::map<std::string, Key> by_name;
  Connection connection;
  c10::intrusive_ptr<c10d::Store> store;  // this rank's connection
  bool is_lost = false;                   // the store does not answer any more
  CommModel peers;
  c10::Device device{c10::DeviceType::CPU};
  std::atomic<int64_t> meetings = 0;     // meetings that this rank has reached
  std::atomic<bool> is_meeting = false;  // this rank waits in the last meeting
  std::string told;                      // for a rank that is alone
  std::mutex status_mutex;
  std::function<RankStatus()> status;
  Connection watched;
  std::thread watch;
  std::future<void> watch_ended;

  Connection Open(bool may_serve) const;
  template <typename Fn>
  Status Ask(Fn fn);
  void Await(const std::string& key, std::optional<std::chrono::milliseconds> limit) const;
  Status CheckAgreement(const Key& key) const;
  Status CheckCalls();
  std::string LeftOut() const;
  bool IsWhole(const Key& key) const;
  c10::intrusive_ptr<c10d::Backend> MakeGloo(const Key& key) const;
  c10::intrusive_ptr<c10d::Backend> MakeNccl(const Key& key) const;
  void MakeBackends(const Key& key, c10d::ProcessGroup& group) const;
  RankStatus StatusNow();
  void Watch();
  void EndWatch();
};

namespace {

std::string JoinedRanks(const std::vector<int64_t>& ranks) {
  return fmt::format("{}", fmt::join(ranks, ","));
}

// Returns the key under which a rank announces its request for a group.
std::string GroupKey(int64_t rank, const std::pair<std::vector<int64_t>, std::string>& group) {
  return "group/" + std::to_string(rank) + "/" + JoinedRanks(group.first) + "/" + group.second;
}

// Returns those of `ranks` that take part.
std::vector<int64_t> PresentOf(const RankGroup::Member& member, std::vector<int64_t> ranks) {
  std::erase_if(ranks, [&](int64_t rank) { return !std::ranges::count(member.present, rank); });
  return ranks;
}

// Keys of the store for the diagnosis of stuck ranks.
constexpr const char* kTrouble = "trouble";  // number of ranks that ask
constexpr const char* kVerdict = "verdict";  // a rank has the diagnosis
std::string WakeKey(int64_t rank) { return "wake/" + std::to_string(rank); }
std::string StatusKey(int64_t rank) { return "status/" + std::to_string(rank); }
constexpr std::string_view kAsked = "asked";
constexpr std::string_view kEnd = "end";

std::string CallsKey(int64_t rank) { return "calls/" + std::to_string(rank); }
std::string LeftOutKey(int64_t rank) { return "calls/left-out/" + std::to_string(rank); }

}  // namespace

RankGroup::RankGroup(const Member& member) : impl_(std::make_unique<Impl>()) {
  impl_->member = member;
  std::vector<int64_t>& present = impl_->member.present;
  if (present.empty()) {
    present.resize(static_cast<size_t>(member.size));
    std::iota(present.begin(), present.end(), 0);
  }
}

RankGroup::~RankGroup() {
  impl_->EndWatch();
  for (const auto& [name, key] : impl_->by_name) c10d::unregister_process_group(name);
}

int64_t RankGroup::rank() const { return impl_->member.rank; }
int64_t RankGroup::local_rank() const { return impl_->member.local_rank; }
int64_t RankGroup::size() const { return impl_->member.size; }
std::chrono::milliseconds RankGroup::timeout() const { return impl_->member.timeout; }
bool RankGroup::is_launched() const { return impl_->member.place.each_ends_itself; }
const std::vector<int64_t>& RankGroup::present() const { return impl_->member.present; }

std::vector<int64_t> RankGroup::RanksOf(const std::string& name) const {
  const auto found = impl_->by_name.find(name);
  return found == impl_->by_name.end() ? std::vector<int64_t>() : found->second.first;
}

bool RankGroup::IsThere(const std::string& name) const {
  const std::vector<int64_t> ranks = RanksOf(name);
  return PresentOf(impl_->member, ranks).size() == ranks.size();
}

Status RankGroup::CheckDevice(const std::string& device) const {
  const c10::Device wanted(device);
  if (wanted.is_cpu() || is_alone()) return {};
  const std::string_view reason =
      wanted.is_cuda() ? WhyNoNccl()
                       : "communication is supported on the CPU (Gloo) and on CUDA devices (NCCL)";
  return reason.empty() ? Status() : Unavailable(fmt::format("device '{}': {}", device, reason));
}

void RankGroup::UseDevice(const std::string& device) { impl_->device = c10::Device(device); }

bool RankGroup::UsesNccl(const std::string& name) const {
  const auto found = impl_->by_name.find(name);
  return impl_->device.is_cuda() && found != impl_->by_name.end() && impl_->IsWhole(found->second);
}

void RankGroup::BeginBatch(const std::string& name) {
  impl_->groups.at(impl_->by_name.at(name))->startCoalescing(impl_->device.type());
}

c10::IValue RankGroup::EndBatch(const std::string& name) {
  return impl_->groups.at(impl_->by_name.at(name))->endCoalescing(impl_->device.type());
}

void RankGroup::SetPeers(const CommModel& model) { impl_->peers = model; }

Result<c10::IValue> RankGroup::Group(const std::string& name, const std::vector<int64_t>& ranks) {
  const Impl::Key key(ranks, name);
  if (const auto known = impl_->by_name.find(name); known != impl_->by_name.end()) {
    if (known->second == key) return c10::IValue(impl_->groups.at(key));
    return Unavailable("the process group '" + name + "' is ambiguous in the trace");
  }
  for (const int64_t one : ranks) {
    if (one >= 0 && one < size()) continue;
    return BadInput(
        fmt::format("process group '{}' has rank {}, expected ranks below {}", name, one, size()));
  }
  const std::set<int64_t> distinct(ranks.begin(), ranks.end());
  const auto own = std::ranges::find(ranks, rank());
  if (distinct.size() != ranks.size() || own == ranks.end()) {
    return Unavailable("the trace has invalid ranks for process group '" + name + "'");
  }
  auto group = c10::make_intrusive<c10d::ProcessGroup>(static_cast<int>(own - ranks.begin()),
                                                       static_cast<int>(ranks.size()));
  c10d::register_process_group(name, group);
  impl_->by_name.emplace(name, key);
  impl_->groups.emplace(key, group);
  return c10::IValue(std::move(group));
}

// Checks that all present ranks of the group have requested it. Call after all have announced their
// requests.
Status RankGroup::Impl::CheckAgreement(const Key& key) const {
  const auto& [ranks, name] = key;
  for (const int64_t rank : PresentOf(member, ranks)) {
    if (store->check({GroupKey(rank, key)})) continue;
    return BadInput("the process group '" + name + "' contains ranks " + JoinedRanks(ranks) +
                    ", but rank " + std::to_string(rank) +
                    " has no collective in it that can be replayed" + LeftOut());
  }
  return {};
}

// Describes the recorded communications that ranks skip, as the end of a sentence.
std::string RankGroup::Impl::LeftOut() const {
  constexpr size_t kShown = 4;
  std::string text;
  size_t count = 0;
  for (const int64_t rank : member.present) {
    const std::string left_out = TextOf(store->get(LeftOutKey(rank)));
    if (left_out.empty() || ++count > kShown) continue;
    text += fmt::format("; rank {} leaves out {}", rank, left_out);
  }
  if (count > kShown)
    text += fmt::format("; and {} more ranks leave out operators", count - kShown);
  return text;
}

// Checks on the lead that the calls of all ranks match.
Status RankGroup::Impl::CheckCalls() {
  constexpr const char* kFit = "calls/fit";
  if (member.rank == member.lead) {
    std::vector<CommLog> logs;
    for (const int64_t rank : member.present) {
      ETUDE_ASSIGN_OR_RETURN(CommLog log, ToLog(store->get(CallsKey(rank))));
      logs.push_back(std::move(log));
    }
    store->set(kFit, ToBytes(MatchComms(logs).first_mismatch));
  }
  Await(kFit, std::nullopt);
  const std::string mismatch = TextOf(store->get(kFit));
  if (mismatch.empty()) return {};
  return BadInput("the communications of the ranks do not match and would deadlock: " + mismatch +
                  LeftOut());
}

namespace {

auto GlooDevice(const MeetingPlace& place) {
  using c10d::ProcessGroupGloo;
  if (!place.interface.empty()) return ProcessGroupGloo::createDeviceForInterface(place.interface);
  return place.one_machine ? ProcessGroupGloo::createDeviceForHostname(kLoopback)
                           : ProcessGroupGloo::createDefaultDevice();
}

}  // namespace

// Returns whether the group has several ranks and all of them take part.
bool RankGroup::Impl::IsWhole(const Key& key) const {
  const std::vector<int64_t>& ranks = key.first;
  return ranks.size() > 1 && PresentOf(member, ranks).size() == ranks.size();
}

// Makes a Gloo group of the present ranks; null for a single rank.
c10::intrusive_ptr<c10d::Backend> RankGroup::Impl::MakeGloo(const Key& key) const {
  const auto& [ranks, name] = key;
  const std::vector<int64_t> present = PresentOf(member, ranks);
  if (present.size() < 2) return {};
  auto options = c10d::ProcessGroupGloo::Options::create(member.timeout);
  options->devices.push_back(GlooDevice(member.place));
  options->global_ranks_in_group.assign(present.begin(), present.end());
  options->group_name = name;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>("gloo/" + JoinedRanks(ranks) + "/" + name, store),
      static_cast<int>(std::ranges::find(present, member.rank) - present.begin()),
      static_cast<int>(present.size()), options);
}

c10::intrusive_ptr<c10d::Backend> RankGroup::Impl::MakeNccl(const Key& key) const {
  const auto& [ranks, name] = key;
  // NCCL's watchdog ends a process without a message, so ours must come first.
  constexpr int kLater = 2;
  return MakeNcclGroup(
      c10::make_intrusive<c10d::PrefixStore>("nccl/" + JoinedRanks(ranks) + "/" + name, store),
      {.name = name,
       .ranks = ranks,
       .place = static_cast<int>(std::ranges::find(ranks, member.rank) - ranks.begin()),
       .timeout = kLater * member.timeout + kAsking + kAnswering});
}

void RankGroup::Impl::MakeBackends(const Key& key, c10d::ProcessGroup& group) const {
  using Type = c10d::ProcessGroup::BackendType;
  c10::intrusive_ptr<c10d::Backend> gloo = MakeGloo(key);
  Type type = Type::GLOO;
  if (IsWhole(key)) {
    group.setBackend(c10::DeviceType::CPU, type, gloo);
    if (!device.is_cpu()) {
      type = Type::NCCL;
      group.setBackend(device.type(), type, MakeNccl(key));
    }
  } else {
    type = Type::CUSTOM;
    const auto emulated =
        MakeEmulatedGroup(group.getRank(), group.getSize(), peers, std::move(gloo), device);
    group.setBackend(c10::DeviceType::CPU, type, emulated);
    if (!device.is_cpu()) group.setBackend(device.type(), type, emulated);
  }
  group.setDefaultBackend(type);
  group.setGroupName(key.second);
}

// Opens a separate connection, so that a wait does not block others. Keys are prefixed with the
// run.
Connection RankGroup::Impl::Open(bool may_serve) const {
  const MeetingPlace& place = member.place;
  c10d::TCPStoreOptions options;
  options.port = place.port;
  options.waitWorkers = false;
  options.timeout = place.each_ends_itself ? kConnecting : kForever;
  if (may_serve && member.rank == member.lead && !place.store_is_there) {
    options.isServer = true;
    if (place.listener >= 0) options.masterListenFd = place.listener;
  }
  const std::set<int> others = SocketsTo(place.port);
  Connection made{
      .store = c10::make_intrusive<c10d::PrefixStore>(
          "etude/" + place.run, c10::make_intrusive<c10d::TCPStore>(place.host, options)),
      .sockets = SocketsTo(place.port)};
  std::erase_if(made.sockets, [&](int socket) { return others.contains(socket); });
  made.LimitAnswers(member.timeout);
  return made;
}

// Calls `fn`, which accesses the store.
template <typename Fn>
Status RankGroup::Impl::Ask(Fn fn) {
  return Caught([&] {
    try {
      fn();
    } catch (const c10::DistNetworkError&) {
      is_lost = true;
      const MeetingPlace& place = member.place;
      throw std::runtime_error(fmt::format(
          "{} does not answer: it stopped or is unreachable",
          place.store_is_there
              ? fmt::format("the store at {}:{}", place.host, place.port)
              : fmt::format("rank {}, which hosts the store of the ranks,", member.lead)));
    }
  });
}

// Waits until a rank has set `key`; without a limit as long as the store answers.
void RankGroup::Impl::Await(const std::string& key,
                            std::optional<std::chrono::milliseconds> limit) const {
  while (true) {
    try {
      store->wait({key}, limit.value_or(member.timeout));
      return;
    } catch (const c10::DistStoreError&) {
      if (limit) throw;
    }
  }
}

Status RankGroup::Connect(const CommLog& calls, const std::string& left_out) {
  const Member& member = impl_->member;
  const auto make_backends = [&] {
    for (const auto& [key, group] : impl_->groups) impl_->MakeBackends(key, *group);
  };
  if (is_alone()) return Caught(make_backends);
  // A rank that gives up closes its connections. Writing to one must yield an error, as in Python,
  // which ignores the signal, too.
  std::signal(SIGPIPE, SIG_IGN);
  // The store logs its errors as warnings, with stack traces.
  if (FLAGS_caffe2_log_level == c10::GLOG_WARNING) FLAGS_caffe2_log_level = c10::GLOG_ERROR;
  ETUDE_RETURN_IF_ERROR(impl_->Ask([&] {
    impl_->connection = impl_->Open(/*may_serve=*/true);
    impl_->store = impl_->connection.store;
    for (const auto& [key, group] : impl_->groups) {
      impl_->store->set(GroupKey(member.rank, key), std::string());
    }
    impl_->store->set(CallsKey(member.rank), ToBytes(calls));
    impl_->store->set(LeftOutKey(member.rank), ToBytes(left_out));
  }));
  // Ranks arrive at different times; the timeout applies from now on.
  ETUDE_RETURN_IF_ERROR(Meet());
  for (const auto& [key, group] : impl_->groups) {
    Status agreed;
    ETUDE_RETURN_IF_ERROR(impl_->Ask([&] { agreed = impl_->CheckAgreement(key); }));
    ETUDE_RETURN_IF_ERROR(agreed);
  }
  Status fit;
  ETUDE_RETURN_IF_ERROR(impl_->Ask([&] { fit = impl_->CheckCalls(); }));
  ETUDE_RETURN_IF_ERROR(fit);
  ETUDE_RETURN_IF_ERROR(impl_->Ask(make_backends));
  return impl_->Ask([&] {
    impl_->watched = impl_->Open(/*may_serve=*/false);
    std::packaged_task<void()> watch([this] { impl_->Watch(); });
    impl_->watch_ended = watch.get_future();
    impl_->watch = std::thread(std::move(watch));
  });
}

void RankGroup::SetStatus(std::function<RankStatus()> status) {
  const std::lock_guard lock(impl_->status_mutex);
  impl_->status = std::move(status);
}

RankStatus RankGroup::Impl::StatusNow() {
  constexpr const char* kMeetings = "meetings";
  RankStatus now{.doing = "setting up", .begun = {}, .partners = {}, .partners_channel = {}};
  {
    const std::lock_guard lock(status_mutex);
    if (status) now = status();
  }
  now.begun[kMeetings] = meetings;
  if (is_meeting && now.partners.empty()) {
    now.partners = member.present;
    now.partners_channel = kMeetings;
    now.call = meetings;
  }
  return now;
}

// Sleeps until a rank asks for this one's status, and answers.
void RankGroup::Impl::Watch() {
  try {
    const auto& own = watched.store;
    own->wait({WakeKey(member.rank)}, kForever);
    if (own->get(WakeKey(member.rank)) != ToBytes(kAsked)) return;
    own->set(StatusKey(member.rank), ToBytes(StatusNow()));
    if (!member.place.each_ends_itself) return;
    own->wait({kVerdict}, kAnswering);
  } catch (const std::exception&) {
    // The store ended with its host.
    return;
  }
  // The rank that asked has reported the reason; this rank's work may never end.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  _exit(kEndedByOthers);
}

void RankGroup::Impl::EndWatch() {
  if (!watch.joinable()) return;
  if (!is_lost) (void)Ask([&] { store->set(WakeKey(member.rank), ToBytes(kEnd)); });
  if (is_lost || watch_ended.wait_for(kAnswering) != std::future_status::ready) watched.Close();
  watch.join();
}

Error RankGroup::Explain(Error error) {
  if (is_alone()) return error;
  const auto& store = impl_->store;
  impl_->connection.LimitAnswers(std::min(impl_->member.timeout, kAnswering));
  (void)impl_->Ask([&] {
    if (store->add(kTrouble, 1) > 1) {
      // Another rank has asked. The launcher ends this rank, or it ends itself.
      store->wait({kVerdict}, kAnswering);
      if (!impl_->member.place.each_ends_itself) std::this_thread::sleep_for(kAnswering);
      error.message += fmt::format(" (see the output of rank {})", TextOf(store->get(kVerdict)));
      return;
    }
    for (const int64_t rank : present()) store->set(WakeKey(rank), ToBytes(kAsked));
    RankStatuses all;
    const auto begin = std::chrono::steady_clock::now();
    while (all.size() < present().size() && std::chrono::steady_clock::now() - begin < kAsking) {
      for (const int64_t rank : present()) {
        if (all.contains(rank) || !store->check({StatusKey(rank)})) continue;
        all[rank] =
            ToStatus(store->get(StatusKey(rank)))
                .value_or(RankStatus{
                    .doing = "unknown state", .begun = {}, .partners = {}, .partners_channel = {}});
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    error.message += DescribeRanks(all, present());
    store->set(kVerdict, ToBytes(std::to_string(rank())));
  });
  // The status of other ranks is lost with the store.
  if (impl_->is_lost && !impl_->member.place.store_is_there && rank() != impl_->member.lead) {
    error.message += DescribeRanks({{rank(), impl_->StatusNow()}}, {impl_->member.lead, rank()});
  }
  return error;
}

Status RankGroup::Leave() {
  impl_->EndWatch();
  if (is_alone()) return {};
  if (!impl_->device.is_cpu()) {
    ETUDE_RETURN_IF_ERROR(Caught([&] {
      for (const auto& [key, group] : impl_->groups) group->shutdown();
    }));
  }
  return impl_->Ask([&] {
    const auto& store = impl_->store;
    constexpr const char* kLeft = "left";
    int64_t left = store->add(kLeft, 1);
    if (impl_->member.rank != impl_->member.lead) return;
    const auto begin = std::chrono::steady_clock::now();
    const auto all = static_cast<int64_t>(present().size());
    while (left < all && std::chrono::steady_clock::now() - begin < kAnswering) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      left = store->add(kLeft, 0);
    }
  });
}

Status RankGroup::Meet(bool in_time) {
  if (is_alone()) return {};
  return impl_->Ask([&] {
    impl_->is_meeting = true;
    const std::string key = "meeting/" + std::to_string(impl_->meetings++);
    const auto all = static_cast<int64_t>(present().size());
    if (impl_->store->add(key, 1) == all) impl_->store->set(key + "/all", std::string());
    impl_->Await(key + "/all", in_time ? std::optional(impl_->member.timeout) : std::nullopt);
    impl_->is_meeting = false;
  });
}

Status RankGroup::Tell(std::string_view bytes) {
  if (is_alone()) {
    impl_->told = bytes;
    return {};
  }
  return impl_->Ask([&] {
    impl_->store->set("told/" + std::to_string(rank()),
                      std::vector<uint8_t>(bytes.begin(), bytes.end()));
  });
}

Result<std::string> RankGroup::ToldBy(int64_t rank) {
  if (is_alone()) return impl_->told;
  std::string told;
  ETUDE_RETURN_IF_ERROR(impl_->Ask([&] {
    const std::string key = "told/" + std::to_string(rank);
    impl_->Await(key, std::nullopt);
    const std::vector<uint8_t> bytes = impl_->store->get(key);
    told.assign(bytes.begin(), bytes.end());
  }));
  return told;
}

c10::IValue MakeReduction(uint8_t number) {
  return c10::make_intrusive<c10d::ReduceOp>(static_cast<c10d::ReduceOp::RedOpType>(number));
}

uint8_t NumberOfReduction(const c10::IValue& reduction) {
  const c10d::ReduceOp::RedOpType type = reduction.toCustomClass<c10d::ReduceOp>()->op_;
  return static_cast<uint8_t>(type);
}

void WaitForWork(const c10::IValue& work) {
  // A member of a batch has no work of its own.
  if (const auto given = work.toCustomClass<c10d::Work>()) given->wait();
}

bool IsOver(const c10::IValue& work) {
  const auto given = work.toCustomClass<c10d::Work>();
  return !given || given->isCompleted();
}

}  // namespace etude
