#include "src/transform/operators/operator_class.h"

#include <algorithm>

#include "src/trace/words/operator_name.h"
#include "src/transform/operators/operator_cost.h"

namespace etude {

bool IsOperatorClass(std::string_view what) { return std::ranges::count(kOperatorClasses, what); }

bool MeansOperator(std::string_view what, std::string_view name, bool communicates) {
  if (what == "comm") return communicates;
  if (what == "compute") return !communicates;
  const std::string_view base = BaseOperatorName(name);
  if (what == "matrix") return !communicates && IsMatrixOperator(base);
  return what == name || what == base;
}

}  // namespace etude
