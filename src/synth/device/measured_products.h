#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/synth/network/product_shape.h"
#include "src/trace/trace.h"
#include "src/trace/words/enums.h"

namespace etude {

// Times of matrix products that somebody measured, by shape and type.
class MeasuredProducts {
 public:
  // A table in CSV: docs/formats/device.md. `path` is what messages call it. kBadInput with file
  // and line for another heading, values of another form, and two times for one product.
  static Result<MeasuredProducts> Parse(std::string_view text, const std::string& path);

  // Of the matrix products of a recorded trace: the median of each shape and type. What a device
  // took is the time of the kernels that an operator started; on a CPU it is the operator's own.
  // kBadInput if there is none with shapes and times. `path` is what messages call the trace.
  static Result<MeasuredProducts> Of(const Trace& trace, const std::string& path);

  size_t size() const { return times_.size(); }
  // nullopt: not measured.
  std::optional<Nanos> Find(const ProductShape& shape, DType type) const;

 private:
  std::map<std::pair<ProductShape, DType>, Nanos> times_;
};

}  // namespace etude
