#pragma once

#include <string_view>

#include "src/trace/words/enums.h"

// Kernels that communicate, by their names.
namespace etude {

// Whether a kernel of this name is one of NCCL or of another library that communicates, by the
// tables of names.
bool IsCommKernel(std::string_view name);
// The collective that such a kernel runs; kUnknown if its name does not tell.
CollectiveType CollectiveOfKernel(std::string_view name);
// Whether the name of a kernel that is in none of the tables suggests that it communicates.
bool SpeaksOfCommunication(std::string_view kernel);

}  // namespace etude
