#pragma once

#include "src/base/result.h"

namespace etude {

// Exit codes of the programs.
enum class ExitCode : int {
  kOk = 0,
  kNo = 1,           // negative result: invalid, different, incomplete
  kUsage = 2,        // wrong command line
  kBadInput = 3,     // malformed file, or not the expected kind
  kUnavailable = 4,  // not possible on this machine or build
  kIo = 5,           // reading or writing failed
  kInternal = 70,    // bug in Etude
  kInterrupted = 130,
};

constexpr ExitCode ExitCodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage: return ExitCode::kUsage;
    case ErrorCode::kBadInput: return ExitCode::kBadInput;
    case ErrorCode::kUnavailable: return ExitCode::kUnavailable;
    case ErrorCode::kIo: return ExitCode::kIo;
    case ErrorCode::kInterrupted: return ExitCode::kInterrupted;
    case ErrorCode::kInternal: return ExitCode::kInternal;
  }
  return ExitCode::kInternal;
}

}  // namespace etude
