# Hostile input (docs/hostile_input.md). A fuzz/fuzzers/X_fuzzer.cc is one body with two drivers: `X_fuzzer_plain`,
# built like everything else, and `X_fuzzer`, built by clang with libFuzzer and the address and
# undefined-behaviour sanitizers, where there is such a clang.

find_program(ATTN_CLANG NAMES clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14)
set(probe ${PROJECT_BINARY_DIR}/libfuzzer_probe)
if(ATTN_CLANG AND NOT DEFINED ATTN_HAS_LIBFUZZER)
  file(WRITE ${probe}.cc "extern \"C\" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }\n")
  execute_process(COMMAND ${ATTN_CLANG} -fsanitize=fuzzer,address,undefined ${probe}.cc -o ${probe}
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT failed)
    set(ATTN_HAS_LIBFUZZER TRUE CACHE INTERNAL "clang has libFuzzer")
  endif()
endif()
if(NOT ATTN_HAS_LIBFUZZER)
  message(STATUS "attnproof: NOT TESTED by libFuzzer: hostile input, as there is no clang with it here")
endif()

add_executable(fuzz_make_seeds fuzz/fuzzers/make_seeds.cc)
target_link_libraries(fuzz_make_seeds PRIVATE attn_fuzz)
set(seeds ${PROJECT_BINARY_DIR}/fuzzer_seeds)
add_test(NAME fuzz/fuzzers/seeds COMMAND fuzz_make_seeds ${seeds})
set_tests_properties(fuzz/fuzzers/seeds PROPERTIES LABELS fuzz FIXTURES_SETUP fuzzer_seeds)

# attn_clang_object(<out> <sanitizers> <source>): the object that clang makes of a source.
function(attn_clang_object out sanitizers source)
  string(MAKE_C_IDENTIFIER ${sanitizers} folder)
  set(object ${PROJECT_BINARY_DIR}/fuzzers/${folder}/${source}.o)
  get_filename_component(folder ${object} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  get_target_property(eigen Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  list(TRANSFORM eigen PREPEND -isystem)
  add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d VERBATIM
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${ATTN_CLANG} -std=c++20 -O1 -g1 -Wall -Wextra
            -fsanitize=fuzzer-no-link,${sanitizers} -fno-sanitize-recover=all
            -I${PROJECT_SOURCE_DIR} ${eigen} -MD -MF ${object}.d
            -c ${PROJECT_SOURCE_DIR}/${source} -o ${object})
  set(${out} ${object} PARENT_SCOPE)
endfunction()

# attn_fuzzer(<name> <runs of libFuzzer> <runs of the plain driver> SANITIZERS <a,b>
#             [SOURCES <file>...] [LIBRARIES <target>...]): both drivers and their tests. SOURCES are
# compiled under the sanitizers; LIBRARIES are the project's own.
function(attn_fuzzer name runs plain_runs)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "SANITIZERS" "SOURCES;LIBRARIES")
  set(main fuzz/fuzzers/${name}_fuzzer.cc)
  set(dictionary fuzz/fuzzers/${name}.dict)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${dictionary})
    set(dictionary fuzz/fuzzers/case_text.dict)
  endif()
  add_executable(${name}_fuzzer_plain ${main} fuzz/fuzzers/plain_driver.cc)
  target_link_libraries(${name}_fuzzer_plain PRIVATE attn_fuzz)
  set(plain ${name}_fuzzer_plain ${seeds}/${name} ${dictionary} ${plain_runs})
  add_test(NAME fuzz/fuzzers/${name}_plain COMMAND ${plain} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})

  set(fuzzer ${PROJECT_BINARY_DIR}/${name}_fuzzer)
  if(ATTN_HAS_LIBFUZZER)
    set(objects)
    foreach(source IN LISTS main arg_SOURCES)
      attn_clang_object(object ${arg_SANITIZERS} ${source})
      list(APPEND objects ${object})
    endforeach()
    set(libraries)
    foreach(library IN LISTS arg_LIBRARIES)
      list(APPEND libraries $<TARGET_FILE:${library}>)
    endforeach()
    add_custom_command(OUTPUT ${fuzzer} DEPENDS ${objects} ${arg_LIBRARIES} VERBATIM
      COMMAND ${ATTN_CLANG} -fsanitize=fuzzer,${arg_SANITIZERS} ${objects} ${libraries}
              $<TARGET_FILE:fmt::fmt> -pthread -o ${fuzzer})
    add_custom_target(${name}_libfuzzer ALL DEPENDS ${fuzzer})
  endif()
  add_test(NAME fuzz/fuzzers/${name}_libfuzzer WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
           COMMAND fuzz/fuzzers/run_libfuzzer.sh ${fuzzer} ${seeds}/${name} ${dictionary} ${runs})
  set_tests_properties(fuzz/fuzzers/${name}_plain fuzz/fuzzers/${name}_libfuzzer PROPERTIES
    LABELS fuzz FIXTURES_REQUIRED fuzzer_seeds TIMEOUT 600 SKIP_RETURN_CODE 77)
endfunction()

set(parser mods/lang/parse.cc mods/lang/tokens.cc mods/lang/expression.cc mods/lang/expression_text.cc
           mods/lang/tables.cc fuzz/text.cc)
set(case ${parser} fuzz/case.cc fuzz/table_spec.cc)
set(library attn_fuzz attn_kernels attn_core Boost::context rapidcheck)
attn_fuzzer(expression 100000 20000 SANITIZERS address,undefined SOURCES ${parser} mods/lang/compile.cc)
attn_fuzzer(case_text 100000 20000 SANITIZERS address,undefined SOURCES ${case})
attn_fuzzer(safetensors 100000 20000 SANITIZERS address,undefined
            SOURCES ${case} fuzz/safetensors.cc fuzz/file_problem.cc LIBRARIES ${library})
# Whole cases: the kernels are those of the library. (Address sanitizers and fibers do not mix well.)
attn_fuzzer(case 200 100 SANITIZERS undefined LIBRARIES ${library})

# A planted fault ends both drivers with the line that runs the case again.
add_test(NAME fuzz/fuzzers/case_plain_planted WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
         COMMAND case_fuzzer_plain ${seeds}/case fuzz/fuzzers/case_text.dict 100)
add_test(NAME fuzz/fuzzers/case_libfuzzer_planted WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
         COMMAND fuzz/fuzzers/run_libfuzzer.sh ${PROJECT_BINARY_DIR}/case_fuzzer ${seeds}/case
                 fuzz/fuzzers/case_text.dict 300)
set_tests_properties(fuzz/fuzzers/case_plain_planted fuzz/fuzzers/case_libfuzzer_planted PROPERTIES
  LABELS fuzz FIXTURES_REQUIRED fuzzer_seeds TIMEOUT 600 SKIP_RETURN_CODE 77
  ENVIRONMENT ATTNPROOF_PLANTED=M08 PASS_REGULAR_EXPRESSION "attnproof replay 'v1 ")
