// Stands for CUDA's runtime, cuBLAS and NCCL in tests of a PyTorch that is built for CUDA, on a
// machine without a GPU (LD_PRELOAD): there are ETUDE_TEST_GPUS devices (2), whose memory is the
// host's. Streams are threads that do copies, events, host functions and communications in order,
// as CUDA's do; kernels and products do nothing. Communications move no data, but begin and end as
// NCCL's do: a collective ends when all ranks have come to it, a send when its receiver has come,
// and what is given in a group goes on at the same time. All then take ETUDE_TEST_NCCL_TIME (0)
// more microseconds. Each is a line of the file ETUDE_TEST_NCCL_LOG: rank, ranks, kind, count and
// number of those in its group.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace {

using Clock = std::chrono::steady_clock;

int DeviceCount() {
  const char* text = std::getenv("ETUDE_TEST_GPUS");
  return text == nullptr ? 2 : std::atoi(text);
}

std::chrono::microseconds TimeOfNccl() {
  const char* text = std::getenv("ETUDE_TEST_NCCL_TIME");
  return std::chrono::microseconds(text == nullptr ? 0 : std::atoi(text));
}

thread_local int current_device = 0;

// Does what it is given, in order, on a thread of its own.
class Stream {
 public:
  Stream() : thread_([this] { Run(); }) {}
  ~Stream() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void Give(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
      ++given_;
    }
    changed_.notify_all();
  }
  bool IsIdle() {
    const std::lock_guard lock(mutex_);
    return done_ == given_;
  }
  void Synchronize() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ == given_; });
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ended_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  uint64_t given_ = 0;
  uint64_t done_ = 0;
  bool ended_ = false;
  std::thread thread_;
};

// Never destroyed: what runs at the end of a process may still use them.
struct World {
  std::mutex mutex;
  std::map<std::pair<int, void*>, Stream*> streams;  // by device and handle; null: the default one
  std::map<char*, size_t> memory;                    // of devices
};
World& TheWorld() {
  static World* const world = new World;
  return *world;
}

Stream& StreamOf(cudaStream_t handle) {
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  // A stream that was made is known whatever the device is now.
  for (const auto& [key, stream] : world.streams) {
    if (handle != nullptr && key.second == handle) return *stream;
  }
  Stream*& made = world.streams[{handle == nullptr ? current_device : -1, handle}];
  if (made == nullptr) made = new Stream;
  return *made;
}

struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0;
  uint64_t passed = 0;
  Clock::time_point time;

  bool IsPassed(uint64_t number) {
    const std::lock_guard lock(mutex);
    return passed >= number;
  }
  void Wait(uint64_t number) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return passed >= number; });
  }
  uint64_t Last() {
    const std::lock_guard lock(mutex);
    return recorded;
  }
};
std::shared_ptr<Event>& EventOf(cudaEvent_t handle) {
  return *reinterpret_cast<std::shared_ptr<Event>*>(handle);
}

int DriverFunction() { return 0; }
int PrimaryContext(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return 0;
}

// What the ranks of a communicator share.
constexpr int kMostRanks = 8;
struct Board {
  std::atomic<int> joined;
  std::array<std::atomic<uint64_t>, kMostRanks> begun;  // collectives
  std::array<std::array<std::atomic<uint64_t>, kMostRanks>, kMostRanks> sends;
  std::array<std::array<std::atomic<uint64_t>, kMostRanks>, kMostRanks> receives;
};

}  // namespace

struct ncclComm {
  Board* board = nullptr;
  int rank = 0;
  int size = 1;
  std::atomic<bool> aborted = false;
};

namespace {

void WaitUntil(ncclComm* comm, const std::function<bool()>& done) {
  while (!comm->aborted && !done()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

// A communication: `begin` tells the others, `wait` returns when these have come.
struct Communication {
  ncclComm* comm = nullptr;
  cudaStream_t stream = nullptr;
  std::string line;
  std::function<std::function<bool()>()> begin;
};

thread_local int group_depth = 0;
thread_local std::vector<Communication> group;

void Log(const Communication& one, size_t together) {
  const char* path = std::getenv("ETUDE_TEST_NCCL_LOG");
  if (path == nullptr) return;
  const std::string text = std::to_string(one.comm->rank) + " " + std::to_string(one.comm->size) +
                           " " + one.line + " " + std::to_string(together) + "\n";
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (file < 0) return;
  if (write(file, text.data(), text.size()) < 0) std::perror(path);
  close(file);
}

void Launch(std::vector<Communication> together) {
  for (const Communication& one : together) Log(one, together.size());
  std::map<cudaStream_t, std::vector<Communication>> by_stream;
  for (Communication& one : together) by_stream[one.stream].push_back(std::move(one));
  for (auto& [stream, all] : by_stream) {
    StreamOf(stream).Give([all = std::move(all)] {
      std::vector<std::function<bool()>> done;
      done.reserve(all.size());
      for (const Communication& one : all) done.push_back(one.begin());
      for (size_t i = 0; i < all.size(); ++i) WaitUntil(all[i].comm, done[i]);
      if (const auto time = TimeOfNccl(); time.count() > 0) std::this_thread::sleep_for(time);
    });
  }
}

ncclResult_t Give(Communication one) {
  if (group_depth > 0) {
    group.push_back(std::move(one));
  } else {
    Launch({std::move(one)});
  }
  return ncclSuccess;
}

ncclResult_t Collective(const char* kind, size_t count, ncclComm* comm, cudaStream_t stream) {
  return Give({comm, stream, std::string(kind) + " " + std::to_string(count), [comm] {
                 const uint64_t number = ++comm->board->begun[static_cast<size_t>(comm->rank)];
                 return [comm, number] {
                   for (int rank = 0; rank < comm->size; ++rank) {
                     if (comm->board->begun[static_cast<size_t>(rank)] < number) return false;
                   }
                   return true;
                 };
               }});
}

ncclResult_t Message(const char* kind, size_t count, int peer, ncclComm* comm,
                     cudaStream_t stream) {
  const bool sends = std::strcmp(kind, "send") == 0;
  const auto from = static_cast<size_t>(sends ? comm->rank : peer);
  const auto to = static_cast<size_t>(sends ? peer : comm->rank);
  std::atomic<uint64_t>* own = &(sends ? comm->board->sends : comm->board->receives)[from][to];
  std::atomic<uint64_t>* other = &(sends ? comm->board->receives : comm->board->sends)[from][to];
  return Give({comm, stream, std::string(kind) + " " + std::to_string(count), [own, other] {
                 const uint64_t number = ++*own;
                 return [other, number] { return *other >= number; };
               }});
}

std::string PathOf(const ncclUniqueId& id) { return std::string(id.internal); }

}  // namespace

extern "C" {

// Devices.
cudaError_t cudaGetDeviceCount(int* count) {
  *count = DeviceCount();
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= DeviceCount()) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  properties->totalGlobalMem = size_t{1} << 34;
  properties->major = 9;
  properties->multiProcessorCount = 8;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 32;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->sharedMemPerBlock = 49152;
  properties->sharedMemPerBlockOptin = properties->sharedMemPerMultiprocessor = 233472;
  for (int i = 0; i < 3; ++i) {
    properties->maxThreadsDim[i] = 1024;
    properties->maxGridSize[i] = 65535;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  std::snprintf(id, static_cast<size_t>(length), "0000:%02x:00.0", device);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -1;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  std::vector<Stream*> all;
  {
    World& world = TheWorld();
    const std::lock_guard lock(world.mutex);
    for (const auto& [key, stream] : world.streams) all.push_back(stream);
  }
  for (Stream* stream : all) stream->Synchronize();
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  *function = std::strcmp(symbol, "cuDevicePrimaryCtxGetState") == 0
                  ? reinterpret_cast<void*>(&PrimaryContext)
                  : reinterpret_cast<void*>(&DriverFunction);
  if (found != nullptr) *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

// Memory.
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  world.memory[static_cast<char*>(*memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  world.memory.erase(static_cast<char*>(memory));
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* all_bytes) {
  *free_bytes = size_t{1} << 33;
  *all_bytes = size_t{1} << 34;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {};
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  auto next = world.memory.upper_bound(const_cast<char*>(static_cast<const char*>(pointer)));
  attributes->type = cudaMemoryTypeUnregistered;
  if (next == world.memory.begin()) return cudaSuccess;
  --next;
  if (static_cast<const char*>(pointer) >= next->first + next->second) return cudaSuccess;
  attributes->type = cudaMemoryTypeDevice;
  attributes->devicePointer = const_cast<void*>(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  StreamOf(stream).Give([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  StreamOf(nullptr).Synchronize();
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  StreamOf(stream).Give([=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

// Streams and events.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = static_cast<cudaStream_t>(std::malloc(1));
  StreamOf(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return StreamOf(stream).IsIdle() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  StreamOf(stream).Synchronize();
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status,
                                     unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, size_t*) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
#endif
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  StreamOf(stream).Give([=] { function(data); });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new std::shared_ptr<Event>(std::make_shared<Event>()));
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &EventOf(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  const std::shared_ptr<Event> own = EventOf(event);
  uint64_t number = 0;
  {
    const std::lock_guard lock(own->mutex);
    number = ++own->recorded;
  }
  StreamOf(stream).Give([own, number] {
    {
      const std::lock_guard lock(own->mutex);
      own->passed = number;
      own->time = Clock::now();
    }
    own->changed.notify_all();
  });
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::shared_ptr<Event> own = EventOf(event);
  return own->IsPassed(own->Last()) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::shared_ptr<Event> own = EventOf(event);
  own->Wait(own->Last());
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds =
      std::chrono::duration<float, std::milli>(EventOf(end)->time - EventOf(begin)->time).count();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::shared_ptr<Event> own = EventOf(event);
  StreamOf(stream).Give([own, number = own->Last()] { own->Wait(number); });
  return cudaSuccess;
}

// Kernels, which do nothing.
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**) {
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                   size_t, unsigned) {
  *blocks = 1;
  return cudaSuccess;
}

// The driver, of which PyTorch asks whether a device has a context.
#define NOTHING(name) \
  int name(...) { return 0; }
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return PrimaryContext(device, flags, active);
}
int cuCtxGetCurrent(void** context) {
  static int some = 0;
  *context = &some;
  return 0;
}
int cuDeviceGet(int* device, int number) {
  *device = number;
  return 0;
}
NOTHING(cuCtxSetCurrent)
NOTHING(cuDeviceGetAttribute)
NOTHING(cuDevicePrimaryCtxRetain)
NOTHING(cuFuncGetAttribute)
NOTHING(cuFuncSetAttribute)
NOTHING(cuFuncSetCacheConfig)
NOTHING(cuGetErrorString)
NOTHING(cuLaunchCooperativeKernel)
NOTHING(cuLaunchKernel)
NOTHING(cuLinkAddData_v2)
NOTHING(cuLinkComplete)
NOTHING(cuLinkCreate_v2)
NOTHING(cuModuleGetFunction)
NOTHING(cuModuleLoad)
NOTHING(cuModuleLoadData)
NOTHING(cuModuleLoadDataEx)
NOTHING(cuModuleUnload)
NOTHING(cuOccupancyMaxActiveBlocksPerMultiprocessor)
NOTHING(cuPointerGetAttribute)
NOTHING(cuTensorMapEncodeTiled)

// Products, which do nothing either.
int cublasCreate_v2(void** handle) {
  *handle = std::malloc(1);
  return 0;
}
int cublasDestroy_v2(void*) { return 0; }
int cublasSetStream_v2(void*, void*) { return 0; }
int cublasGetStream_v2(void*, void**) { return 0; }
int cublasSetWorkspace_v2(void*, void*, size_t) { return 0; }
int cublasSetMathMode(void*, int) { return 0; }
int cublasGetMathMode(void*, int* mode) {
  *mode = 0;
  return 0;
}
int cublasSetPointerMode_v2(void*, int) { return 0; }
int cublasGetPointerMode_v2(void*, int* mode) {
  *mode = 0;
  return 0;
}
NOTHING(cublasSgemm_v2)
NOTHING(cublasSgemmStridedBatched)
NOTHING(cublasGemmEx)

// NCCL.
ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "/dev/shm/etude-test-nccl-XXXXXX");
  const int file = mkstemp(id->internal);
  if (file < 0) return ncclSystemError;
  const bool sized = ftruncate(file, sizeof(Board)) == 0;
  close(file);
  return sized ? ncclSuccess : ncclSystemError;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t*) {
  if (size > kMostRanks) return ncclInvalidArgument;
  const int file = open(PathOf(id).c_str(), O_RDWR);
  if (file < 0) return ncclSystemError;
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return ncclSystemError;
  auto* made = new ncclComm;
  made->board = static_cast<Board*>(memory);
  made->rank = rank;
  made->size = size;
  ++made->board->joined;
  WaitUntil(made, [&] { return made->board->joined >= size; });
  unlink(PathOf(id).c_str());
  *comm = made;
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, size, id, rank, nullptr);
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->aborted = true;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return ncclCommAbort(comm); }
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "an error of the stand-in"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--group_depth > 0 || group.empty()) return ncclSuccess;
  Launch(std::exchange(group, {}));
  return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void*, void*, size_t count, ncclDataType_t, ncclRedOp_t,
                           ncclComm_t comm, cudaStream_t stream) {
  return Collective("all_reduce", count, comm, stream);
}
ncclResult_t ncclBroadcast(const void*, void*, size_t count, ncclDataType_t, int, ncclComm_t comm,
                           cudaStream_t stream) {
  return Collective("broadcast", count, comm, stream);
}
ncclResult_t ncclBcast(void*, size_t count, ncclDataType_t, int, ncclComm_t comm,
                       cudaStream_t stream) {
  return Collective("broadcast", count, comm, stream);
}
ncclResult_t ncclReduce(const void*, void*, size_t count, ncclDataType_t, ncclRedOp_t, int,
                        ncclComm_t comm, cudaStream_t stream) {
  return Collective("reduce", count, comm, stream);
}
ncclResult_t ncclAllGather(const void*, void*, size_t count, ncclDataType_t, ncclComm_t comm,
                           cudaStream_t stream) {
  return Collective("all_gather", count, comm, stream);
}
ncclResult_t ncclReduceScatter(const void*, void*, size_t count, ncclDataType_t, ncclRedOp_t,
                               ncclComm_t comm, cudaStream_t stream) {
  return Collective("reduce_scatter", count, comm, stream);
}
ncclResult_t ncclAlltoAll(const void*, void*, size_t count, ncclDataType_t, ncclComm_t comm,
                          cudaStream_t stream) {
  return Collective("all_to_all", count, comm, stream);
}
ncclResult_t ncclSend(const void*, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return Message("send", count, peer, comm, stream);
}
ncclResult_t ncclRecv(void*, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return Message("receive", count, peer, comm, stream);
}

}  // extern "C"
