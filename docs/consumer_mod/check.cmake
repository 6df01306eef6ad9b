# Installs the build into a prefix of its own, then runs this folder's tests against it, as a user
# would: the right mod must pass, the wrong one must be found, for the reason that is wrong with it.
cmake_minimum_required(VERSION 3.25)
set(folder ${BUILD}/consumer_mod)
file(REMOVE_RECURSE ${folder})

execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${folder}/prefix
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${folder}/build -G Ninja
                -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${folder}/prefix
                COMMAND_ERROR_IS_FATAL ANY)

# run_test(<name> <status> <text>...): how it must end, and what it must say
function(run_test name status)
  execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${folder}/build -R "^${name}$" -V
                  OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE got)
  message("${said}")
  if(NOT got STREQUAL status)
    message(FATAL_ERROR "${name}: ctest ended with ${got}, expected ${status}")
  endif()
  foreach(text IN LISTS ARGN)
    string(FIND "${said}" "${text}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "${name}: no '${text}'")
    endif()
  endforeach()
endfunction()

run_test(capped_alibi 0 "no discrepancy" "to captured tensors at 399" "flash_backward")
run_test(wrong_derivative 8 "wrong derivative: ")
