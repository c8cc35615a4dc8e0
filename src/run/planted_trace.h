#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "src/formats/kineto/kineto_reader.h"
#include "src/formats/test_support.h"
#include "src/trace/trace.h"

// For tests of analyses only: builds small device traces, times in microseconds.
namespace etude::testing_support {

class PlantedTrace {
 public:
  // Add nodes on host thread `thread`.
  PlantedTrace& Operator(const std::string& name, int thread, int64_t begin, int64_t end,
                         const std::string& args = "") {
    return Event("cpu_op", name, 100, thread, begin, end, args);
  }
  PlantedTrace& Label(const std::string& name, int thread, int64_t begin, int64_t end) {
    return Event("user_annotation", name, 100, thread, begin, end, "");
  }
  // Adds a runtime call; `correlation` links it to the work that it launched.
  PlantedTrace& Call(const std::string& name, int thread, int64_t begin, int64_t end,
                     int correlation) {
    return Event("cuda_runtime", name, 100, thread, begin, end,
                 "\"correlation\":" + std::to_string(correlation));
  }
  PlantedTrace& Launch(int thread, int64_t begin, int64_t end, int correlation) {
    return Call("cudaLaunchKernel", thread, begin, end, correlation);
  }
  PlantedTrace& Kernel(const std::string& name, int stream, int64_t begin, int64_t end,
                       int correlation) {
    return OnDevice("kernel", name, stream, begin, end, correlation, "");
  }
  PlantedTrace& OnDevice(const std::string& category, const std::string& name, int stream,
                         int64_t begin, int64_t end, int correlation, const std::string& args) {
    return Event(category, name, 0, stream, begin, end,
                 "\"device\":0,\"stream\":" + std::to_string(stream) + ",\"correlation\":" +
                     std::to_string(correlation) + (args.empty() ? "" : ",") + args);
  }

  // Adds an allocator event: `bytes` allocated (freed if negative), with `total` in use after it.
  // The CPU's event (device type 0) has no reserved bytes.
  PlantedTrace& Memory(int thread, int64_t at, int64_t address, int64_t bytes, int64_t total,
                       int device_type = 1) {
    events_ +=
        std::string(events_.empty() ? "" : ",") +
        R"({"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":100,"tid":)" +
        std::to_string(thread) + ",\"ts\":" + std::to_string(at) + R"(,"args":{"Device Type":)" +
        std::to_string(device_type) + R"(,"Device Id":0,"Addr":)" + std::to_string(address) +
        ",\"Bytes\":" + std::to_string(bytes) + ",\"Total Allocated\":" + std::to_string(total) +
        ",\"Total Reserved\":" + std::to_string(device_type == 0 ? 0 : 2 * total) + "}}";
    return *this;
  }

  // Adds an allocator event as written by PyTorch 1.9, without a total and here without an address.
  PlantedTrace& MemoryWithoutTotal(int thread, int64_t at, int64_t bytes) {
    events_ += std::string(events_.empty() ? "" : ",") +
               R"({"ph":"i","s":"t","name":"[memory]","pid":100,"tid":)" + std::to_string(thread) +
               ",\"ts\":" + std::to_string(at) +
               R"(,"args":{"Device Type":1,"Device Id":0,"Bytes":)" + std::to_string(bytes) + "}}";
    return *this;
  }

  Trace Read() const {
    return ReadWith(MakeKinetoReader, "{\"schemaVersion\":1,\"traceEvents\":[" + events_ + "]}")
        .value();
  }

 private:
  PlantedTrace& Event(const std::string& category, const std::string& name, int pid, int tid,
                      int64_t begin, int64_t end, const std::string& args) {
    events_ += std::string(events_.empty() ? "" : ",") + "{\"ph\":\"X\",\"cat\":\"" + category +
               "\",\"name\":\"" + name + "\",\"pid\":" + std::to_string(pid) +
               ",\"tid\":" + std::to_string(tid) + ",\"ts\":" + std::to_string(begin) +
               ",\"dur\":" + std::to_string(end - begin) + ",\"args\":{" + args + "}}";
    return *this;
  }

  std::string events_;
};

inline constexpr Nanos Us(int64_t microseconds) { return Nanos{microseconds * 1000}; }

}  // namespace etude::testing_support
