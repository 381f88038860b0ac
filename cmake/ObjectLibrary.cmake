# A library of which the linker keeps everything: for strategies and scenarios, which register themselves and
# which nobody names. Whatever links <name>, directly or not, gets all of its objects, once, and what they are
# linked with, but not the include folders of that. Sources and libraries are added to <name>_objects.
# Usage: lockbench_object_library(<name> <source>...)
function(lockbench_object_library name)
  add_library(${name}_objects OBJECT ${ARGN})
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE lockbench_options $<LINK_ONLY:${name}_objects> $<TARGET_OBJECTS:${name}_objects>)
endfunction()
