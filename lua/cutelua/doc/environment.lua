--- The environment variables that the program, its specs and make read: the
-- only list of them. spec/program/doc_spec.lua compares it with the sources.

-- {name, text}; `for` names the reader, where it is not the program.
return {
  {"CUTELUA_CACHE", "`0` turns the cache of compiled kernels off."},
  {"CUTELUA_CACHE_MB", "How many MiB the cache of compiled kernels may "
    .. "take; 256 when absent. The oldest entries leave first."},
  {"CUTELUA_DEBUG", "What to tell on standard error, with commas between: "
    .. "`trace` says which locals and fields loops and branches carry and why, "
    .. "`sim` prints the simulator's program."},
  {"CUTELUA_WORKSHOP", "Where the workshop is, for links to it: an address, "
    .. "or a file; where `cutelua web` serves it when absent."},
  {"CUTELUA_NO_CUDA", "`1` hides the driver, NVRTC and cuBLAS, as if they "
    .. "were not installed."},
  {"CUDA_HOME", "A CUDA toolkit, absolute: where NVRTC and cuBLAS are looked "
    .. "for behind the loader's own places."},
  {"CUDA_PATH", "The same as CUDA_HOME, looked at after it."},
  {"LD_LIBRARY_PATH", "Where the loader looks for the driver, NVRTC and "
    .. "cuBLAS first. What is found is noted in the cache's keys."},
  {"VIRTUAL_ENV", "A Python environment, absolute: its nvidia packages may "
    .. "hold NVRTC and cuBLAS."},
  {"PATH", "Where `python3`'s environments and the toolkit's tools are looked "
    .. "for."},
  {"HOME", "Holds `.cache/cutelua`, `.local/state/cutelua` and "
    .. "`.local/share/cutelua` where XDG's variables are absent, and "
    .. "`.editrc`."},
  {"XDG_CACHE_HOME", "Holds `cutelua`, the cache of compiled kernels; "
    .. "`~/.cache` when absent. A relative one is ignored."},
  {"XDG_STATE_HOME", "Holds `cutelua/history`, the prompt's history; "
    .. "`~/.local/state` when absent. A relative one is ignored."},
  {"XDG_DATA_HOME", "Holds `cutelua/tuned`, what `cutelua tune` measured; "
    .. "`~/.local/share` when absent. A relative one is ignored."},
  {"NO_COLOR", "Anything but nothing: no colours in the terminal."},
  {"COLORTERM", "`truecolor` or `24bit`: pictures in the terminal have more "
    .. "than 256 colours."},
  {"TERM", "The terminal's kind; `dumb` has no colours, and one that is "
    .. "unknown no line editor."},
  {"COLUMNS", "Characters in a line of what is printed: pictures, the "
    .. "prompt's lists and values. The terminal's own width when absent, or no "
    .. "number from 1 on; without a terminal the prompt has 80, and pictures "
    .. "are as wide as they are."},
  {"EDITRC", "Settings of the prompt's line editor; `~/.editrc` when "
    .. "absent."},
  {"LUA_PATH", "Where `require` looks for Lua files, as in stock Lua."},
  {"LUA_CPATH", "Where `require` looks for C modules, as in stock Lua."},

  {"CUTELUA_MEMERR", "N: allocation N and those behind it fail; of builds "
    .. "with -DCUTE_MEMERR.", ["for"] = "make memerr"},
  {"CUTELUA", "The program to run; `build/cutelua` when absent.",
    ["for"] = "specs"},
  {"CUTELUA_LUA", "The Lua interpreter that runs specs; `lua5.4` when "
    .. "absent.", ["for"] = "specs"},
  {"CUTE_BUILD", "The folder that was built in; `build` when absent.",
    ["for"] = "specs"},
  {"CUTE_SUMMARY", "The file that a spec's counts go to.", ["for"] = "specs"},
  {"CUTE_COUNTS", "The file that all specs' counts go to.",
    ["for"] = "specs"},
  {"CUTE_OUT", "The folder that specs write to.", ["for"] = "specs"},
  {"CUTE_SANITIZED", "Set where the program is built with sanitizers.",
    ["for"] = "specs"},
  {"CUTE_KIT", "Set: specs run without busted, from the kit.",
    ["for"] = "make gpu"},
  {"CUTELUA_ALL", "Set: the long versions of some specs run.",
    ["for"] = "specs"},
  {"CUTELUA_SEEDS", "How many seeds random specs try.", ["for"] = "specs"},
  {"CUTELUA_WRITE_GOLDEN", "Set: the emitter's texts are written anew "
    .. "instead of compared.", ["for"] = "specs"},
  {"CUTELUA_GOLDEN_DIR", "The golden data; `../shared/golden` when absent.",
    ["for"] = "make golden"},
  {"CUTELUA_GOLDEN_APPROX_DIR", "The golden data of approximate functions; "
    .. "`golden-approx` beside the others when absent.",
    ["for"] = "make golden"},
  {"CUTELUA_GOLDEN_HOPPER_DIR", "The golden data of Hopper; `golden-hopper` "
    .. "beside the others when absent.", ["for"] = "make golden"},
  {"CUTELUA_NAMES_FILE", "The list of the Python DSL's names; "
    .. "`../shared/dsl-names.txt` when absent.", ["for"] = "make names"},
  {"CUTELUA_REFERENCE_DIR", "What benches compare with; "
    .. "`../shared/reference` when absent.", ["for"] = "make bench"},
  {"FUZZ_SECONDS", "How long each target of `make fuzz` runs; 60 when "
    .. "absent.", ["for"] = "make fuzz"},
}
