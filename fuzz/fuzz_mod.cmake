# Fuzzing a mod or a mask of one's own. Installed with the package.
include_guard()

# attn_fuzz_mod(<name> [HEADER <file> TYPE <type>] [MASK_HEADER <file> MASK_TYPE <type>]
#               [TABLES <table>...] [INCLUDES <folder>...] [CASES <count>] [ARGS <argument>...])
# adds the test <name>: `attnproof fuzz` examines the type and fuzzes the shipped kernels with it, so
# many cases (default 300). TABLES are those that it captures, in the order of its members, such as
# 'slope[Hq]=uniform(0,0.5)'. The type is compiled when the test runs, by the project's compiler, and
# kept in the build folder. Further arguments go to `attnproof fuzz`.
function(attn_fuzz_mod name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;TYPE;MASK_HEADER;MASK_TYPE;CASES"
                        "TABLES;INCLUDES;ARGS")
  if(NOT TARGET attnproof::attnproof)
    message(FATAL_ERROR "attn_fuzz_mod: this attnproof was installed without its tool")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "attn_fuzz_mod: '${arg_UNPARSED_ARGUMENTS}', expected HEADER, TYPE, "
                        "MASK_HEADER, MASK_TYPE, TABLES, INCLUDES, CASES or ARGS")
  endif()
  if(NOT arg_CASES)
    set(arg_CASES 300)
  endif()
  set(command fuzz --cases ${arg_CASES} --cache ${CMAKE_CURRENT_BINARY_DIR}/attn_fuzz_mod)
  foreach(part "HEADER;--mod-file" "MASK_HEADER;--mask-file")
    list(GET part 0 variable)
    list(GET part 1 option)
    if(arg_${variable})
      cmake_path(ABSOLUTE_PATH arg_${variable} BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
      list(APPEND command ${option} ${arg_${variable}})
    endif()
  endforeach()
  foreach(part "TYPE;--mod-type" "MASK_TYPE;--mask-type")
    list(GET part 0 variable)
    list(GET part 1 option)
    if(arg_${variable})
      list(APPEND command ${option} ${arg_${variable}})
    endif()
  endforeach()
  foreach(table IN LISTS arg_TABLES)
    list(APPEND command --table ${table})
  endforeach()
  foreach(folder IN LISTS arg_INCLUDES)
    cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND command --include ${folder})
  endforeach()
  add_test(NAME ${name} COMMAND attnproof::attnproof ${command} ${arg_ARGS})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER}" TIMEOUT 1200)
endfunction()
