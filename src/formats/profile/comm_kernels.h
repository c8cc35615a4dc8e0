#pragma once

#include <string_view>

#include "src/trace/words/enums.h"

// Recognition of communication kernels by their names.
namespace etude {

// Returns whether the tables contain a kernel with this name, from NCCL or another communication
// library.
bool IsCommKernel(std::string_view name);
// Returns the collective that such a kernel runs, and kUnknown if the name does not determine it.
CollectiveType CollectiveOfKernel(std::string_view name);
// Returns whether the name of a kernel that is in none of the tables suggests communication.
bool SpeaksOfCommunication(std::string_view kernel);

}  // namespace etude
