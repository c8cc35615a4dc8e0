# Embeds the files that every benchmark of `etude benchmark` consists of, src/standalone/assets, into
# a source file.

set(runtime_dir ${PROJECT_SOURCE_DIR}/src/standalone/assets)
set(runtime_files CMakeLists.txt benchmark.h main.cc benchmark.py runtime.py)
set(ETUDE_BENCHMARK_RUNTIME ${PROJECT_BINARY_DIR}/benchmark_runtime.cc)
set(runtime_text "#include \"src/standalone/runtime_files.h\"\n\nnamespace etude {\nnamespace {\n\nconstexpr RuntimeFile kFiles[] = {\n")
foreach(name IN LISTS runtime_files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${runtime_dir}/${name})
  file(READ ${runtime_dir}/${name} content)
  string(APPEND runtime_text "    {\"${name}\", R\"ETUDE(${content})ETUDE\"},\n")
endforeach()
string(APPEND runtime_text "};\n\n}  // namespace\n\nstd::span<const RuntimeFile> RuntimeFiles() { return kFiles; }\n\n}  // namespace etude\n")
file(CONFIGURE OUTPUT ${ETUDE_BENCHMARK_RUNTIME} CONTENT "@runtime_text@" @ONLY)
