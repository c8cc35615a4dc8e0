#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/trace/trace.h"
#include "src/trace/words/enums.h"

namespace etude {

// Extras that come from an event's `args` have the argument's name as key; those with this before
// it are keys of the event itself ("event/id", "event/cat").
inline constexpr std::string_view kEventExtraPrefix = "event/";
// The event's category, where it is not the one that its kind has by default.
inline constexpr std::string_view kCategoryExtraKey = "event/cat";

// An argument of events that Etude writes, of nodes whose place, Name(Place), is not that of the
// event's category; kEtKindAttr says the kind in the same way.
inline constexpr std::string_view kPlaceArg = "etude_place";

// What an event of a category (`cat`) of the profiler is.
struct ProfileCategory {
  std::string_view name;
  NodeKind kind = NodeKind::kUnknown;
  Place place = Place::kUnknown;
  std::optional<uint8_t> scope = std::nullopt;  // PyTorch's, where the event's name tells it
};

// What an event of the name `event` is, by the tables of categories and names; an unknown category
// gives kUnknown twice.
ProfileCategory FindProfileCategory(std::string_view name, std::string_view event);
// The kind of an event of that category, which may be a communication; `collective`: what the event
// says the name of that is, or "".
NodeKind KindOfEvent(const ProfileCategory& category, std::string_view event,
                     std::string_view collective);
// The category that a node of this kind has unless it says otherwise (in an extra `cat`); "" if
// there is none.
std::string_view DefaultProfileCategory(NodeKind kind, Place place);

}  // namespace etude
