// Ranks started by torchrun, connected by Gloo on CPUs and by NCCL on CUDA devices.

#include "ranks.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>

#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "benchmark.h"

namespace {

Job job;
c10::Device device{c10::kCPU};
c10::intrusive_ptr<c10d::Store> store;
std::vector<c10::intrusive_ptr<c10d::ProcessGroup>> groups;  // groups that this rank is in
std::vector<std::string> names;                              // group names
int meetings = 0;
int gathered = 0;
int told = 0;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int NumberIn(std::ifstream& file) {
  int number = 0;
  if (!(file >> number)) Fail("ranks.data ends early");
  return number;
}

// Reads a list of numbers, preceded by its length.
std::vector<int> ListIn(std::ifstream& file) {
  std::vector<int> list(static_cast<size_t>(NumberIn(file)));
  for (int& number : list) number = NumberIn(file);
  return list;
}

void Expect(std::ifstream& file, const char* expected) {
  std::string word;
  file >> word;
  if (word != expected) Fail("ranks.data: found '" + word + "', expected '" + expected + "'");
}

void Connect() {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(std::atoi(Environment("MASTER_PORT").c_str()));
  // torchrun may run the store itself.
  options.isServer = job.rank == 0 && Environment("TORCHELASTIC_USE_AGENT_STORE") != "True";
  options.waitWorkers = false;
  store = c10::make_intrusive<c10d::PrefixStore>(
      "benchmark/" + Environment("TORCHELASTIC_RESTART_COUNT"),
      c10::make_intrusive<c10d::TCPStore>(Environment("MASTER_ADDR"), options));
}

// Selects this process's device, and checks that its ranks can communicate.
void ChooseDevice(c10::Device& wanted) {
  if (wanted.is_cpu()) return;
#ifdef USE_C10D_NCCL
  if (wanted.is_cuda()) {
    if (!wanted.has_index()) {
      wanted.set_index(static_cast<c10::DeviceIndex>(std::atoi(Environment("LOCAL_RANK").c_str())));
    }
    c10::impl::VirtualGuardImpl(wanted.type()).setDevice(wanted);
    device = wanted;
    return;
  }
#endif
  Fail(
      "found an unsupported device, expected the CPU (Gloo) or, if built with CUDA and NCCL "
      "headers, a CUDA device (NCCL): --device " +
      wanted.str());
}

#ifdef USE_C10D_NCCL
void AddNccl(const std::string& name, const std::vector<int>& ranks, int own,
             c10d::ProcessGroup& group) {
  using Type = c10d::ProcessGroup::BackendType;
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->global_ranks_in_group.assign(ranks.begin(), ranks.end());
  options->group_name = name;
  group.setBackend(device.type(), Type::NCCL,
                   c10::make_intrusive<c10d::ProcessGroupNCCL>(
                       c10::make_intrusive<c10d::PrefixStore>("nccl/" + name, store), own,
                       static_cast<int>(ranks.size()), options));
  group.setDefaultBackend(Type::NCCL);
}
#endif

void MakeGroup(const std::string& name, const std::vector<int>& ranks, int own) {
  using Type = c10d::ProcessGroup::BackendType;
  const auto size = static_cast<int>(ranks.size());
  auto options = c10d::ProcessGroupGloo::Options::create();
  const std::string interface = Environment("GLOO_SOCKET_IFNAME");
  const bool one_machine = Environment("LOCAL_WORLD_SIZE") == Environment("WORLD_SIZE");
  options->devices.push_back(
      !interface.empty() ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
      : one_machine      ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                         : c10d::ProcessGroupGloo::createDefaultDevice());
  options->global_ranks_in_group.assign(ranks.begin(), ranks.end());
  options->group_name = name;
  auto group = c10::make_intrusive<c10d::ProcessGroup>(own, size);
  group->setBackend(c10::DeviceType::CPU, Type::GLOO,
                    c10::make_intrusive<c10d::ProcessGroupGloo>(
                        c10::make_intrusive<c10d::PrefixStore>(name, store), own, size, options));
  group->setDefaultBackend(Type::GLOO);
#ifdef USE_C10D_NCCL
  if (device.is_cuda()) AddNccl(name, ranks, own, *group);
#endif
  group->setGroupName(name);
  c10d::register_process_group(name, group);
  groups.push_back(std::move(group));
  names.push_back(name);
}

}  // namespace

std::string GapFile(int rank) { return "gaps_" + std::to_string(rank) + ".data"; }
std::string DataFile(int data) { return "step_" + std::to_string(data) + ".data"; }

Job Join(const std::string& folder, c10::Device& wanted) {
  std::ifstream file(folder + "ranks.data");
  Expect(file, "ranks");
  Expect(file, "1");
  Expect(file, "groups");
  std::vector<std::vector<int>> all(static_cast<size_t>(NumberIn(file)));
  for (std::vector<int>& ranks : all) ranks = ListIn(file);
  Expect(file, "members");
  job.size = NumberIn(file);
  const std::string rank = Environment("RANK");
  const std::string size = std::to_string(job.size);
  if (rank.empty() || Environment("WORLD_SIZE") != size) {
    Fail("a job of " + size + " ranks: torchrun --no-python --nproc-per-node=" + size +
         " build/benchmark");
  }
  job.rank = std::atoi(rank.c_str());
  std::vector<int> own;
  for (int i = 0; i <= job.rank; ++i) {
    job.step = NumberIn(file);
    job.data = NumberIn(file);
    own = ListIn(file);
  }
  ChooseDevice(wanted);
  // Writing to a rank that has ended is reported as an error.
  std::signal(SIGPIPE, SIG_IGN);
  Connect();
  // All ranks make groups in one order, which avoids deadlocks. The step numbers them by their
  // order in `own`.
  std::vector<size_t> order(own.begin(), own.end());
  std::sort(order.begin(), order.end());
  for (const size_t number : order) {
    const std::vector<int>& ranks = all.at(number);
    const auto place = std::find(ranks.begin(), ranks.end(), job.rank);
    if (place == ranks.end()) Fail("ranks.data: a rank uses a group that does not contain it");
    MakeGroup("group_" + std::to_string(number), ranks, static_cast<int>(place - ranks.begin()));
  }
  std::vector<c10::intrusive_ptr<c10d::ProcessGroup>> made;
  std::vector<std::string> made_names;
  for (const int number : own) {
    const auto place = static_cast<size_t>(
        std::find(order.begin(), order.end(), static_cast<size_t>(number)) - order.begin());
    made.push_back(groups[place]);
    made_names.push_back(names[place]);
  }
  groups = std::move(made);
  names = std::move(made_names);
  return job;
}

void Meet() {
  const std::string key = "meeting/" + std::to_string(meetings++);
  if (store->add(key, 1) == job.size) store->set(key + "/all", std::vector<uint8_t>());
  store->wait({key + "/all"});
}

bool Tell(bool own) {
  const std::string key = "answer/" + std::to_string(told++);
  if (job.rank == 0) store->set(key, std::vector<uint8_t>{static_cast<uint8_t>(own)});
  // The client may take its time between steps.
  if (job.rank != 0) store->wait({key}, std::chrono::hours(24));
  return store->get(key).at(0) != 0;
}

std::vector<double> Gather(double own) {
  const std::string key = "told/" + std::to_string(gathered++) + "/";
  std::vector<uint8_t> bytes(sizeof own);
  std::memcpy(bytes.data(), &own, sizeof own);
  store->set(key + std::to_string(job.rank), bytes);
  std::vector<double> all;
  for (int rank = 0; job.rank == 0 && rank < job.size; ++rank) {
    const std::vector<uint8_t> told = store->get(key + std::to_string(rank));
    std::memcpy(&all.emplace_back(), told.data(), sizeof own);
  }
  return all;
}

void Leave() {
  Meet();
  if (!device.is_cpu()) {
    for (const auto& group : groups) group->shutdown();
  }
  for (const std::string& name : names) c10d::unregister_process_group(name);
  groups.clear();
  // Rank 0 may host the store, so it leaves last.
  if (job.rank != 0) {
    store->add("left", 1);
  } else {
    while (store->add("left", 0) < job.size - 1) std::this_thread::yield();
  }
}

void SetGroup(c10::IValue& argument, int number) {
  argument = groups.at(static_cast<size_t>(number));
}
void SetGroupName(c10::IValue& argument, int number) {
  argument = names.at(static_cast<size_t>(number));
}

void SetReduction(c10::IValue& argument, const char* name) {
  const std::string_view kNames[] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"};
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) Fail(std::string("no reduction ") + name);
  const auto kind = static_cast<c10d::ReduceOp::RedOpType>(found - kNames);
  argument = c10::make_intrusive<c10d::ReduceOp>(kind);
}

void BeginGroupBatch(int number) {
  if (device.is_cuda()) groups.at(static_cast<size_t>(number))->startCoalescing(device.type());
}
void EndGroupBatch(int number, c10::IValue& work) {
  if (device.is_cuda()) work = groups.at(static_cast<size_t>(number))->endCoalescing(device.type());
}

void WaitFor(const c10::IValue& work) {
  if (!work.isCustomClass()) return;
  // Members of a batch have no work of their own.
  if (const auto begun = work.toCustomClass<c10d::Work>()) begun->wait();
}
