# Fuzzing a kernel of one's own. Installed with the package.
include_guard()
set(ATTN_FUZZ_TEMPLATES ${CMAKE_CURRENT_LIST_DIR})

# attn_fuzz_kernel(<name> SOURCES <file>... [NAMESPACE <namespace>] [ENGINES warp thread]
#                  [MOD <expression>] [MASK <expression>] [CASES <count>] [ARGS <argument>...])
# builds a kernel that is written on the SIMT layer as the program <name>: the tool attnproof with
# the row <name> in its table. Its tests <name>_warp and <name>_thread fuzz that row on each engine
# with so many cases (default 1000; a tenth of them on the thread engine, which is slower) and with
# further arguments of `attnproof fuzz`; MOD and MASK narrow what is drawn. The sources are compiled
# once an engine. One of them defines, in the namespace (default: <name>) and there in
# `inline namespace ATTN_TARGET`,
#
#   attn::Implementation row();                  // what it is; the name and the builds are filled in
#   std::string_view run(const attn::AttentionCall&, const attn::Implementation&);  // launches it
#
# Definitions, include directories and libraries of the target <name> are theirs too.
function(attn_fuzz_kernel name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAMESPACE;MOD;MASK;CASES" "SOURCES;ENGINES;ARGS")
  if(NOT TARGET attnproof::fuzz)
    message(FATAL_ERROR "attn_fuzz_kernel: there is no attnproof::fuzz. ${attnproof_fuzz_MISSING}")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "attn_fuzz_kernel: '${arg_UNPARSED_ARGUMENTS}', expected SOURCES, "
                        "NAMESPACE, ENGINES, MOD, MASK, CASES or ARGS")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "attn_fuzz_kernel: SOURCES is empty, expected the kernel's")
  endif()
  foreach(default "NAMESPACE;${name}" "ENGINES;warp;thread" "CASES;1000")
    list(POP_FRONT default part)
    if(NOT arg_${part})
      set(arg_${part} ${default})
    endif()
  endforeach()
  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "attn_fuzz_kernel: '${name}', expected letters, digits and underscores")
  endif()
  if(NOT arg_CASES MATCHES "^[1-9][0-9]*$")
    message(FATAL_ERROR "attn_fuzz_kernel: CASES is '${arg_CASES}', expected a count")
  endif()

  set(NAME ${name})
  set(NAMESPACE ${arg_NAMESPACE})
  list(GET arg_ENGINES 0 FIRST)
  set(DECLARATIONS "")
  set(BUILDS "")
  set(main ${CMAKE_CURRENT_BINARY_DIR}/attn_kernels/${name}_main.cc)
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE attnproof::fuzz)
  foreach(engine IN LISTS arg_ENGINES)
    attn_add_kernels(${name} ENGINE ${engine} SOURCES ${arg_SOURCES})
    target_include_directories(${name}_${engine} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    string(APPEND DECLARATIONS "namespace ${engine} {\nattn::Implementation row();\n"
           "std::string_view run(const attn::AttentionCall&, const attn::Implementation&);\n}\n")
    string(APPEND BUILDS "  row.${engine} = ${NAMESPACE}::${engine}::run;\n")
    set(cases ${arg_CASES})
    if(engine STREQUAL "thread")
      math(EXPR cases "(${cases} + 9) / 10")
    endif()
    set(fixed "")
    foreach(part MOD MASK)
      if(arg_${part})
        string(TOLOWER ${part} option)
        list(APPEND fixed --${option} "${arg_${part}}")
      endif()
    endforeach()
    add_test(NAME ${name}_${engine} COMMAND ${name} fuzz --impl ${name} --engine ${engine}
             --cases ${cases} ${fixed} ${arg_ARGS})
  endforeach()
  configure_file(${ATTN_FUZZ_TEMPLATES}/kernel_main.cc.in ${main} @ONLY)
endfunction()
