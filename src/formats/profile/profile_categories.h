#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/trace/trace.h"
#include "src/trace/words/enums.h"

namespace etude {

// Prefix of extras for members of the event itself ("event/id", "event/cat"). Extras for members of
// an event's `args` have the argument's name as key.
inline constexpr std::string_view kEventExtraPrefix = "event/";
// The event's category, if it is not the default for its kind.
inline constexpr std::string_view kCategoryExtraKey = "event/cat";

// Argument of events that Etude writes for nodes whose place, Name(Place), differs from that of the
// event's category. kEtKindAttr contains the kind in the same way.
inline constexpr std::string_view kPlaceArg = "etude_place";

// The meaning of a profiler's event category (`cat`).
struct ProfileCategory {
  std::string_view name;
  NodeKind kind = NodeKind::kUnknown;
  Place place = Place::kUnknown;
  std::optional<uint8_t> scope = std::nullopt;  // PyTorch's, where the event's name tells it
};

// Returns the meaning of an event with the name `event`, from the tables of categories and names.
// An unknown category gives kUnknown twice.
ProfileCategory FindProfileCategory(std::string_view name, std::string_view event);
// Returns the kind of an event of that category, which may be a communication. `collective`: its
// name in the event, or "".
NodeKind KindOfEvent(const ProfileCategory& category, std::string_view event,
                     std::string_view collective);
// Returns the category of a node of this kind without an extra `cat`, and "" if there is none.
std::string_view DefaultProfileCategory(NodeKind kind, Place place);

}  // namespace etude
