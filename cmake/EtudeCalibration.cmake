# Embeds the suite's calibration and the measured variation, docs/suite/calibration.json and
# docs/suite/variation.json, into a source file: the references of convergence that the program
# knows.

set(calibration_source "#include \"src/suite/results/calibration_text.h\"\n\nnamespace etude::suite {\n\n")
foreach(name Calibration Variation)
  string(TOLOWER ${name} calibration_file)
  set(calibration_file ${PROJECT_SOURCE_DIR}/docs/suite/${calibration_file}.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${calibration_file})
  file(READ ${calibration_file} calibration_text)
  string(APPEND calibration_source "std::string_view ${name}Text() {\n  return R\"ETUDE(${calibration_text})ETUDE\";\n}\n\n")
endforeach()
string(APPEND calibration_source "}  // namespace etude::suite\n")
set(ETUDE_SUITE_CALIBRATION ${PROJECT_BINARY_DIR}/suite_calibration.cc)
file(CONFIGURE OUTPUT ${ETUDE_SUITE_CALIBRATION} CONTENT "@calibration_source@" @ONLY)
