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
  set_tests_properties(fuzz/tool_test PROPERTIES LABELS fuzz TIMEOUT 600)
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
