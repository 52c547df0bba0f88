# find_package(townsquare 0.1 CONFIG [COMPONENTS shared static]): the targets townsquare::shared and townsquare::static.

get_filename_component(_townsquare_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
# Not find_library: its result stays in the cache when townsquare_DIR changes to another prefix.
set(_townsquare_shared "")
set(_townsquare_static "")
foreach(_townsquare_folder lib "lib/${CMAKE_LIBRARY_ARCHITECTURE}" lib64)
    set(_townsquare_folder "${_townsquare_prefix}/${_townsquare_folder}")
    foreach(_townsquare_name libtownsquare.so libtownsquare.dylib)
        if(NOT _townsquare_shared AND EXISTS "${_townsquare_folder}/${_townsquare_name}")
            set(_townsquare_shared "${_townsquare_folder}/${_townsquare_name}")
        endif()
    endforeach()
    if(NOT _townsquare_static AND EXISTS "${_townsquare_folder}/libtownsquare.a")
        set(_townsquare_static "${_townsquare_folder}/libtownsquare.a")
    endif()
endforeach()

if(_townsquare_shared AND NOT TARGET townsquare::shared)
    add_library(townsquare::shared SHARED IMPORTED)
    set_target_properties(townsquare::shared PROPERTIES
        IMPORTED_LOCATION "${_townsquare_shared}"
        INTERFACE_INCLUDE_DIRECTORIES "${_townsquare_prefix}/include")
    if(NOT APPLE)
        set_target_properties(townsquare::shared PROPERTIES IMPORTED_SONAME libtownsquare.so.0.1)
    endif()
endif()
if(_townsquare_static AND NOT TARGET townsquare::static)
    add_library(townsquare::static STATIC IMPORTED)
    set_target_properties(townsquare::static PROPERTIES
        IMPORTED_LOCATION "${_townsquare_static}"
        INTERFACE_INCLUDE_DIRECTORIES "${_townsquare_prefix}/include")
    if(APPLE)
        # Not tested.
        set_property(TARGET townsquare::static PROPERTY INTERFACE_LINK_LIBRARIES
            "-framework Security" "-framework CoreFoundation" iconv m)
    else()
        set_property(TARGET townsquare::static PROPERTY INTERFACE_LINK_LIBRARIES gcc_s util rt pthread m dl c)
    endif()
endif()

# What check_required_components does in packages that CMake itself installs.
foreach(_townsquare_component IN LISTS townsquare_FIND_COMPONENTS)
    if(TARGET townsquare::${_townsquare_component})
        set(townsquare_${_townsquare_component}_FOUND TRUE)
    elseif(townsquare_FIND_REQUIRED_${_townsquare_component})
        set(townsquare_FOUND FALSE)
        set(townsquare_NOT_FOUND_MESSAGE "${_townsquare_prefix} has no library for townsquare::${_townsquare_component}")
    endif()
endforeach()
if(NOT TARGET townsquare::shared AND NOT TARGET townsquare::static)
    set(townsquare_FOUND FALSE)
    set(townsquare_NOT_FOUND_MESSAGE "${_townsquare_prefix} has no libtownsquare")
endif()
