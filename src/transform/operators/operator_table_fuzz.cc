#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "src/transform/operators/operator_table.h"

// Tables of measured operators, which are read as they were written.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = etude::ParseOperatorTable(text, "fuzz");
  if (!table) return 0;
  const auto again = etude::ParseOperatorTable(etude::OperatorTableText(*table), "fuzz");
  if (!again || (!table->times.empty() && *again != *table)) std::abort();
  return 0;
}
