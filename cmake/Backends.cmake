# What lockbench can be built without: the switch LOCKBENCH_<name>, ON where `libraries` were `found`. Not an option(),
# which would still be OFF once they have been installed. Gives LOCKBENCH_<name>_REASON for where the switch is off.
# Usage: lockbench_switch(<name> <found> <libraries> <what to do without them> <what is left out>)
macro(lockbench_switch name found libraries remedy what)
  if(NOT DEFINED LOCKBENCH_${name})
    set(LOCKBENCH_${name} "${found}")
    set(LOCKBENCH_${name}_REASON "built without ${libraries}: ${remedy} and build again")
  else()
    set(LOCKBENCH_${name}_REASON "built with LOCKBENCH_${name}=OFF")
  endif()
  if(LOCKBENCH_${name} AND NOT "${found}")
    message(FATAL_ERROR "LOCKBENCH_${name} needs ${libraries}: ${remedy}")
  endif()
  if(NOT LOCKBENCH_${name})
    message(STATUS "${what} left out: ${LOCKBENCH_${name}_REASON}")
  endif()
endmacro()

# That of a store. Gives the library as PkgConfig::<module>, too.
# Usage: lockbench_backend(<NAME> <pkg-config module> <Debian package>)
macro(lockbench_backend name module package)
  if(NOT TARGET PkgConfig::${module})
    pkg_check_modules(${module} QUIET IMPORTED_TARGET ${module})
  endif()
  lockbench_switch(${name} "${${module}_FOUND}" ${module} "install the package ${package}"
                   "The strategies of LOCKBENCH_${name} are")
endmacro()

# The strategies of one store, strategies/<folder>, as the library lockbench_<folder>. Where the store's switch
# is off, the library has the names of the store and of its strategies alone, which are read from their
# descriptors, with the reason. Globbed, so that adding a strategy is adding a file.
# Usage: lockbench_store(<folder> <NAME of the switch, or ALWAYS> <library>...)
function(lockbench_store folder name)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc ${folder}/client/*.cc)
  if(NOT name STREQUAL ALWAYS AND NOT LOCKBENCH_${name})
    lockbench_absent_strategies(sources ${folder} "${LOCKBENCH_${name}_REASON}" ${sources})
    set(ARGN)
  endif()
  lockbench_object_library(lockbench_${folder} ${sources})
  target_link_libraries(lockbench_${folder}_objects PUBLIC lockbench_strategies_core ${ARGN})
  lockbench_precompile(lockbench_${folder}_objects)
  target_link_libraries(lockbench_strategies INTERFACE lockbench_${folder})
endfunction()

# Sets `variable` to a generated source that registers the strategies of `sources` as left out.
function(lockbench_absent_strategies variable folder reason)
  set(text "// Generated: what this build leaves out.\n#include \"strategies/registry.h\"\n#include \"strategies/store.h\"\n\nnamespace lockbench {\nnamespace {\n\n")
  string(APPEND text "const StoreRegistration store({.name = \"${folder}\", .value_name = \"URL\", .help = \"not available: ${reason}\", .not_built = \"${reason}\"});\n")
  # Descriptors stand beside the folder client/.
  set(strategies ${ARGN})
  list(FILTER strategies EXCLUDE REGEX "/client/")
  foreach(source ${strategies})
    file(STRINGS ${source} names REGEX "\\.name = \"[a-z][a-z0-9-]*\",$")
    foreach(line ${names})
      string(REGEX REPLACE ".*\"(.*)\".*" "\\1" strategy "${line}")
      string(MAKE_C_IDENTIFIER ${strategy} identifier)
      string(APPEND text "const Registration ${identifier}({.name = \"${strategy}\", .backend = \"${folder}\", .not_built = \"${reason}\"});\n")
    endforeach()
  endforeach()
  string(APPEND text "\n}  // namespace\n}  // namespace lockbench\n")
  set(generated ${CMAKE_BINARY_DIR}/generated/strategies/absent_${folder}.cc)
  file(GENERATE OUTPUT ${generated} CONTENT "${text}")
  set(${variable} ${generated} PARENT_SCOPE)
endfunction()
