# The tests. A *_test.cc is one executable and one CTest test, named after its file. Labels say
# what it needs: reference, differential, fuzz and docs by folder, gpu and slow by its name.
# Tests run in the root of the repository, so that they find its files by their names.

# attn_label(<out> <file>): the labels of a test.
function(attn_label out file)
  set(label reference)
  if(file MATCHES "^optimized/")
    set(label differential)
  elseif(file MATCHES "^(fuzz|docs)/")
    set(label ${CMAKE_MATCH_1})
  endif()
  if(file MATCHES "_(gpu|slow)_test\\.cc$")
    list(APPEND label ${CMAKE_MATCH_1})
  endif()
  set(${out} "${label}" PARENT_SCOPE)
endfunction()

# What almost every test includes, compiled once for all that are compiled alike. The preset `dev`
# goes without, so that a test that forgets an include is seen.
set(precompiled <algorithm> <array> <cmath> <cstdint> <functional> <limits> <map> <optional> <random>
                <span> <stdexcept> <string> <vector> <Eigen/Core> <gtest/gtest.h>)

# attn_test(<file> <library> [warp|thread]): one test executable, for one engine where it is named.
function(attn_test file library)
  string(REGEX REPLACE "\\.cc$" "" name ${file})
  if(ARGN)
    string(APPEND name _${ARGN})
  endif()
  string(MAKE_C_IDENTIFIER ${name} target)
  add_executable(${target} ${file})
  target_link_libraries(${target} PRIVATE ${library} GTest::gtest_main)
  if(ARGN)
    attn_engine_flags(${target} ${ARGN})
  endif()
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_compile_options(${target} PRIVATE -O1)  # half the time to compile; they run for seconds
  endif()
  get_property(first GLOBAL PROPERTY ATTN_FIRST_TEST_${library}_${ARGN})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${precompiled})
    set_property(GLOBAL PROPERTY ATTN_FIRST_TEST_${library}_${ARGN} ${target})
  endif()
  add_test(NAME ${name} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  attn_label(labels ${file})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 600)
  if(slow IN_LIST labels)
    set_tests_properties(${name} PROPERTIES TIMEOUT 3600)
  endif()
  if(gpu IN_LIST labels)  # a test that found no GPU says so: it is skipped, never passed
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
  endif()
endfunction()

foreach(file IN LISTS sources)
  if(NOT file MATCHES "_test\\.cc$")
    continue()
  elseif(file MATCHES "_engine_test\\.cc$")
    attn_test(${file} attn_kernels warp)
    attn_test(${file} attn_kernels thread)
  elseif(file MATCHES "^(optimized|docs)/")
    attn_test(${file} attn_kernels)
  elseif(file MATCHES "^fuzz/")
    if(TARGET attn_fuzz)
      attn_test(${file} attn_fuzz)
    endif()
  else()
    attn_test(${file} attn_core)
  endif()
endforeach()

# The command line of the tool.
if(TARGET attnproof)
  add_test(NAME fuzz/tool_test COMMAND fuzz/tool_test.sh $<TARGET_FILE:attnproof>
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  add_test(NAME fuzz/faults COMMAND attnproof faults)  # every one is found
  set_tests_properties(fuzz/tool_test fuzz/faults PROPERTIES LABELS fuzz TIMEOUT 600)
endif()

if(TARGET attn_fuzz)
  include(fuzz/fuzzers/fuzzers.cmake)  # hostile input
endif()

# Scripts that test scripts; 77: what they need is not here.
foreach(script optimized/cuda_report_test docs/gpu/compare_pytorch_test)
  add_test(NAME ${script} COMMAND ${script}.sh WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  attn_label(labels ${script}.sh)
  set_tests_properties(${script} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77)
endforeach()

# What the pages say is true: links and snippets, what the change in a lesson's "Break it" prints, the
# commands that are shown; the gallery holds every mask and mod; the site is whole and fits a phone.
function(attn_docs_test name)
  add_test(NAME docs/${name} COMMAND ${ARGN} COMMAND_EXPAND_LISTS
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs/${name} PROPERTIES LABELS docs TIMEOUT 600 SKIP_RETURN_CODE 77)
endfunction()

if(NOT Python3_Interpreter_FOUND)
  message(STATUS "attnproof: NOT TESTED: the pages of docs/, as there is no Python 3 here")
else()
  attn_docs_test(pages ${Python3_EXECUTABLE} docs/check_pages.py)
  attn_docs_test(ci_gate_workflow ${Python3_EXECUTABLE} docs/ci_gate/check_workflow.py)

  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
  get_target_property(includes Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  list(TRANSFORM includes PREPEND -isystem)
  set(compile ${CMAKE_CXX_COMPILER} ${flags} -std=c++20 -O0 -Wno-error ${includes}
      -DATTN_ENGINE_WARP -ffp-contract=off -Wno-psabi
      $<TARGET_FILE:attn_kernels> $<TARGET_FILE:attn_core> $<TARGET_FILE:Boost::context>
      $<TARGET_FILE:GTest::gtest_main> $<TARGET_FILE:GTest::gtest> -pthread)
  file(GLOB pages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/docs docs/lessons/*.md)
  foreach(page IN LISTS pages)
    string(REGEX REPLACE "\\.md$" "_break_it" name ${page})
    attn_docs_test(${name} ${Python3_EXECUTABLE} docs/break_it.py docs/${page} -- ${compile})
  endforeach()

  if(TARGET attnproof)
    attn_docs_test(commands ${Python3_EXECUTABLE} docs/commands_test.py $<TARGET_FILE:attnproof>)
    attn_docs_test(report_in_a_browser ${Python3_EXECUTABLE} docs/report_browser_check.py
                   $<TARGET_FILE:attnproof>)
    attn_docs_test(scripts docs/scripts/scripts_test.sh $<TARGET_FILE:attnproof>
                   ${PROJECT_BINARY_DIR}/scripts_environment)
    attn_docs_test(scripts_faults_slow docs/scripts/scripts_test.sh $<TARGET_FILE:attnproof>
                   ${PROJECT_BINARY_DIR}/scripts_environment faults)
    set_tests_properties(docs/scripts_faults_slow PROPERTIES LABELS "docs;slow" DEPENDS docs/scripts)
    add_executable(docs_registered_names docs/registered_names.cc)
    target_link_libraries(docs_registered_names PRIVATE attn_core)
    attn_docs_test(gallery ${Python3_EXECUTABLE} docs/gallery.py --check $<TARGET_FILE:attnproof>
                   $<TARGET_FILE:docs_registered_names>)
  endif()
  if(ATTN_HAS_SITE)
    attn_site(make_site ${PROJECT_BINARY_DIR}/site_test NO)
    attn_docs_test(site ${make_site})
    attn_docs_test(site_in_a_browser ${Python3_EXECUTABLE} docs/browser_check.py
                   ${PROJECT_BINARY_DIR}/site_test)
    set_tests_properties(docs/site PROPERTIES FIXTURES_SETUP site)
    set_tests_properties(docs/site_in_a_browser PROPERTIES FIXTURES_REQUIRED site)
  else()
    attn_docs_test(site bash -c
                   "echo 'NOT TESTED: the site was not made, as there is no tool or no Doxygen' && exit 77")
  endif()
endif()

# A *_fails.cc must not compile, for the reason that its first line names.
foreach(file IN LISTS sources)
  if(file MATCHES "_fails\\.cc$")
    string(REGEX REPLACE "\\.cc$" "" name ${file})
    add_test(NAME ${name} COMMAND .ci/must_fail.sh ${file} ${CMAKE_CXX_COMPILER} -std=c++20
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    attn_label(labels ${file})
    set_tests_properties(${name} PROPERTIES LABELS "${labels}")
  endif()
endforeach()

add_test(NAME arrows COMMAND .ci/arrows.sh ${PROJECT_SOURCE_DIR}
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
add_test(NAME arrows_are_checked COMMAND .ci/arrows.sh --self-test
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
add_test(NAME consumer COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR}
         -D COMPILER=${CMAKE_CXX_COMPILER} -P docs/consumer/check.cmake
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(arrows arrows_are_checked PROPERTIES LABELS reference)
set_tests_properties(consumer PROPERTIES LABELS docs)

# A kernel of a user's own, ported and fuzzed as docs/ci_gate.md says.
if(TARGET attnproof)
  get_target_property(includes Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  list(TRANSFORM includes PREPEND -I)
  add_test(NAME docs/ci_gate COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR}
           -D COMPILER=${CMAKE_CXX_COMPILER} -D "NVCC=${CMAKE_CUDA_COMPILER}" -D "EIGEN=${includes}"
           -P docs/ci_gate/check.cmake
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs/ci_gate PROPERTIES LABELS docs TIMEOUT 600)
  # a project that fuzzes mods of its own: right ones and wrong ones
  add_test(NAME consumer_mod COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR}
           -D COMPILER=${CMAKE_CXX_COMPILER} -P docs/consumer_mod/check.cmake
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(consumer_mod PROPERTIES LABELS docs TIMEOUT 1200)
endif()
