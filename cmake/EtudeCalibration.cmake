# Embeds the suite's calibration, docs/suite/calibration.json, into a source file: the references of
# convergence that the program knows.

set(calibration_file ${PROJECT_SOURCE_DIR}/docs/suite/calibration.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${calibration_file})
file(READ ${calibration_file} calibration_text)
set(calibration_source "#include \"src/suite/results/calibration_text.h\"\n\nnamespace etude::suite {\n\nstd::string_view CalibrationText() {\n  return R\"ETUDE(${calibration_text})ETUDE\";\n}\n\n}  // namespace etude::suite\n")
set(ETUDE_SUITE_CALIBRATION ${PROJECT_BINARY_DIR}/suite_calibration.cc)
file(CONFIGURE OUTPUT ${ETUDE_SUITE_CALIBRATION} CONTENT "@calibration_source@" @ONLY)
