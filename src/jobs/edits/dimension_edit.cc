#include "src/jobs/edits/dimension_edit.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/format_count.h"

namespace etude {

std::string TextOf(const DimensionSizes& sizes) {
  std::string text;
  const auto add = [&](std::string_view option, std::optional<int64_t> size) {
    if (size) text += fmt::format("{}{} {}", text.empty() ? "" : " ", option, *size);
  };
  add("--batch", sizes.batch);
  add("--sequence", sizes.sequence);
  add("--hidden", sizes.hidden);
  add("--heads", sizes.heads);
  add("--ffn", sizes.ffn);
  add("--vocab", sizes.vocabulary);
  return text;
}

Result<AppliedDimensions> EditDimensions(const std::vector<Trace>& traces,
                                         const DimensionSizes& sizes, const Limits& limits) {
  const std::string option = TextOf(sizes);
  if (traces.size() != 1 || !traces.front().comms().empty()) {
    return BadInput(fmt::format(
        "{}: found {}, expected a job of one rank without communication; nearest possible: "
        "--second and --sizes, with a recording of another such size",
        option,
        traces.size() == 1 ? std::string("communication") : FormatCount(traces.size(), "rank")));
  }
  AppliedDimensions made;
  Result<DimensionEdit> edit = WithDimensionSizes(traces.front(), sizes, limits);
  // Errors about one of the sizes begin with its option.
  if (!edit && !edit.error().message.starts_with("--")) return RefusedEdit(option, edit.error());
  if (!edit) return tl::unexpected(edit.error());
  made.edit = *std::move(edit);
  std::vector<std::string> changes;
  auto dimensions = nlohmann::ordered_json::array();
  for (const ResizedDimension& dimension : made.edit.dimensions) {
    dimensions.push_back({{"option", dimension.option},
                          {"before", dimension.before},
                          {"after", dimension.after},
                          {"count", dimension.factors}});
    changes.push_back(fmt::format("{} {} instead of {}", dimension.option.substr(2),
                                  dimension.after, dimension.before));
  }
  made.applied = {
      .edit = option,
      .certainty = Certainty::kModelled,
      .nodes = made.edit.resized,
      .text = fmt::format("{}; {} with other sizes, {} with times by their work",
                          fmt::join(changes, ", "), FormatCount(made.edit.resized, "operator"),
                          FormatCount(made.edit.retimed)),
      .details = {{"dimensions", std::move(dimensions)}, {"retimed", made.edit.retimed}}};
  return made;
}

}  // namespace etude
