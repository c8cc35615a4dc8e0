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

// Measured times of matrix products, by shape and type.
class MeasuredProducts {
 public:
  // Parses a table in CSV: docs/formats/device.md. `path` is its name in messages. kBadInput with
  // file and line for another heading, values of another form, and two times for one product.
  static Result<MeasuredProducts> Parse(std::string_view text, const std::string& path);

  // Returns the median times of a recorded trace's matrix products, by shape and type. The time on
  // a device is that of the kernels started by an operator; on a CPU it is the operator's own time.
  // kBadInput if there is none with shapes and times. `path` is the trace's name in messages.
  static Result<MeasuredProducts> Of(const Trace& trace, const std::string& path);

  // Returns the table that Parse reads.
  std::string ToCsv() const;

  size_t size() const { return times_.size(); }
  // Returns nullopt if not measured.
  std::optional<Nanos> Find(const ProductShape& shape, DType type) const;

 private:
  std::map<std::pair<ProductShape, DType>, Nanos> times_;
};

}  // namespace etude
