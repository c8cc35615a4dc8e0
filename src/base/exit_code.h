#pragma once

#include "src/base/result.h"

namespace etude {

// How the programs end.
enum class ExitCode : int {
  kOk = 0,
  kNo = 1,           // the answer is no: invalid, different, incomplete
  kUsage = 2,        // the command line is wrong
  kBadInput = 3,     // a file is malformed or not what was announced
  kUnavailable = 4,  // this machine or build cannot do it
  kIo = 5,           // reading or writing failed
  kInternal = 70,    // a fault of Etude
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
