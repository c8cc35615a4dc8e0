#include "src/formats/profile/event_arguments.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

// Returns whether the event's fields contain the argument.
bool Take(ProfilerEvent& event, std::string_view name, std::string_view text,
          bool is_text = false) {
  EventArguments arguments;
  return EventArguments::Take(arguments.Find(name),
                              {.text = text, .is_text = is_text, .raw = text.data()}, event);
}

TEST(EventArguments, NumbersInQuotesStayTexts) {
  ProfilerEvent event;
  EXPECT_TRUE(Take(event, "correlation", "9"));
  EXPECT_EQ(event.correlation, 9);
  EXPECT_FALSE(Take(event, "External id", "9", true));
  EXPECT_FALSE(event.external_id);
  EXPECT_FALSE(Take(event, "stream", "-1"));
  EXPECT_TRUE(event.on_no_stream);
}

TEST(EventArguments, SomeStayExtras) {
  ProfilerEvent event;
  EXPECT_FALSE(Take(event, "agent", "GPU-4", true));
  EXPECT_EQ(event.agent, 4);
  EXPECT_FALSE(Take(event, "finished", "false"));
  EXPECT_TRUE(event.is_unfinished);
  EXPECT_FALSE(Take(event, "grid", "["));
}

TEST(EventArguments, FactsOfCommunications) {
  ProfilerEvent event;
  EXPECT_TRUE(Take(event, "Collective name", "allreduce", true));
  EXPECT_EQ(event.comm.name, "allreduce");
  EXPECT_FALSE(Take(event, "dtype", "null"));
}

TEST(EventArguments, TheFirstTaskTypeCounts) {
  ProfilerEvent event;
  EXPECT_FALSE(Take(event, "Task Type", "AI_CORE", true));
  EXPECT_FALSE(Take(event, "Task Type", "SDMA", true));
  EXPECT_EQ(event.task_type, "AI_CORE");
}

}  // namespace
}  // namespace etude
