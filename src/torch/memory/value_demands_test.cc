#include "src/replay/values/value_demands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <ATen/core/dispatch/Dispatcher.h>

namespace etude {
namespace {

// A misspelt name or a wrong position would have no effect.
TEST(ValueDemands, NameTensorArgumentsOfRegisteredOperators) {
  const auto names = c10::Dispatcher::singleton().getAllOpNames();
  for (const ValueDemand& demand : ValueDemands()) {
    SCOPED_TRACE(std::string(demand.op) + " argument " + std::to_string(demand.argument));
    bool takes_tensor = false;
    for (const c10::OperatorName& name : names) {
      if (name.name != demand.op) continue;
      const auto handle = c10::Dispatcher::singleton().findSchema(name);
      if (!handle) continue;
      const auto& arguments = handle->schema().arguments();
      const auto position = static_cast<size_t>(demand.argument);
      takes_tensor |=
          position < arguments.size() &&
          arguments[position].type()->annotation_str().find("Tensor") != std::string::npos;
    }
    EXPECT_TRUE(takes_tensor);
  }
}

}  // namespace
}  // namespace etude
