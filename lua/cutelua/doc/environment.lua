--- Lists the environment variables that cutelua, its specs and make read.
-- spec/program/doc_spec.lua compares the list with the sources.

-- Each entry is {name, text}. The field `for` names the program that reads the
-- variable, if it is not cutelua.
return {
  {"CUTELUA_CACHE", "`0` disables the caches of compiled kernels."},
  {"CUTELUA_CACHE_IMAGE", "The absolute path of a read-only cache of "
    .. "compiled kernels, in which kernels are looked up first; "
    .. "`cutelua compile --into` fills it."},
  {"CUTELUA_CACHE_MB", "Size limit in MiB of the cache of compiled "
    .. "kernels; 256 when absent. The least recently used entries are removed "
    .. "first."},
  {"CUTELUA_DEBUG", "Debug output on standard error, separated by commas: "
    .. "`trace` prints the locals and fields that loops and branches carry, "
    .. "with reasons; `sim` prints the simulator's program."},
  {"CUTELUA_WORKSHOP", "The workshop that links lead to: an address or a "
    .. "file; the address of `cutelua web` when absent."},
  {"CUTELUA_NO_CUDA", "`1` hides the driver, NVRTC and cuBLAS, as if they "
    .. "were not installed."},
  {"CUTELUA_NVRTC", "The absolute path of the NVRTC library to use, or of a "
    .. "folder with one: a toolkit, a Python environment, or the target of "
    .. "`pip install --target`. No other is searched for."},
  {"CUTELUA_LIBRARY", "The `libcutelua.so` that the Python package loads in "
    .. "place of its own.", ["for"] = "the Python package"},
  {"CUTELUA_CAPTURE", "The folder that gets the recorded launch.",
   ["for"] = "libcutecapture"},
  {"CUTELUA_CAPTURE_KERNEL", "A pattern of the names of recorded kernels; `*` "
    .. "when absent.", ["for"] = "libcutecapture"},
  {"CUTELUA_CAPTURE_SKIP", "The number of launches of these kernels before the "
    .. "first that is recorded.", ["for"] = "libcutecapture"},
  {"CUTELUA_CAPTURE_COUNT", "The number of recorded launches; 1 when absent.",
   ["for"] = "libcutecapture"},
  {"CUTELUA_CAPTURE_MB", "Size limit in MiB of the allocations of a recorded "
    .. "launch; 256 when absent.", ["for"] = "libcutecapture"},
  {"CUTELUA_CAPTURE_POINTERS", "`1` also records allocations that words in "
    .. "recorded allocations reach.", ["for"] = "libcutecapture"},
  {"CUTELUA_CAPTURE_AFTER", "`1` records the memory after the launch, too.",
   ["for"] = "libcutecapture"},
  {"CUTELUA_CAPTURE_PTX", "A folder in which `X.ptx` is the PTX of the machine "
    .. "code `X.cubin`.", ["for"] = "libcutecapture"},
  {"TRITON_CACHE_DIR", "Triton's cache, which is searched for PTX; "
    .. "`~/.triton/cache` when absent.", ["for"] = "libcutecapture"},
  {"CUTELUA_PYTHON", "The Python, with PyTorch and NumPy, that runs the tests "
    .. "of the Python package; `python3` when absent.", ["for"] = "specs"},
  {"CUTELUA_TEST_DEVICE", "The device of PyTorch on which the tests of the "
    .. "Python package's gradients run; `cpu` when absent.", ["for"] = "specs"},
  {"CUTELUA_OPTIONS", "Further options of `cutelua ci`.",
   ["for"] = "ci/check.sh"},
  {"CUTELUA_PYTEST", "The arguments of pytest, such as `tests`; no pytest when "
    .. "absent.", ["for"] = "ci/check.sh"},
  {"CUTELUA_REPORTS", "The folder of the reports; `cutelua-reports` when "
    .. "absent.", ["for"] = "ci/check.sh"},
  {"CUTELUA_VERDICTS", "The folder of kept verdicts; `.cutelua/verdicts` when "
    .. "absent.", ["for"] = "ci/check.sh"},
  {"CUDA_HOME", "An absolute path of a CUDA toolkit, searched for NVRTC and "
    .. "cuBLAS after the loader's own folders."},
  {"CUDA_PATH", "The same as CUDA_HOME, searched after it."},
  {"LD_LIBRARY_PATH", "Folders that the loader searches first for the "
    .. "driver, NVRTC and cuBLAS. The cache's keys include the result."},
  {"VIRTUAL_ENV", "An absolute path of a Python environment, whose nvidia "
    .. "packages may contain NVRTC and cuBLAS."},
  {"CONDA_PREFIX", "An absolute path of a conda environment, which may contain "
    .. "NVRTC and cuBLAS."},
  {"PATH", "Folders searched for `python3`'s environments and the toolkit's "
    .. "tools."},
  {"HOME", "Holds `.cache/cutelua`, `.local/state/cutelua` and "
    .. "`.local/share/cutelua` if XDG's variables are absent, and "
    .. "`.editrc`."},
  {"XDG_CACHE_HOME", "Holds `cutelua`, the cache of compiled kernels; "
    .. "`~/.cache` when absent. A relative one is ignored."},
  {"XDG_STATE_HOME", "Holds `cutelua/history`, the prompt's history; "
    .. "`~/.local/state` when absent. A relative one is ignored."},
  {"XDG_DATA_HOME", "Holds `cutelua/tuned`, measurements of `cutelua tune`; "
    .. "`~/.local/share` when absent. A relative one is ignored."},
  {"NO_COLOR", "Any value: no colours in the terminal."},
  {"COLORTERM", "`truecolor` or `24bit`: pictures in the terminal have more "
    .. "than 256 colours."},
  {"TERM", "The terminal's kind; `dumb` has no colours, and an unknown one "
    .. "no line editor."},
  {"COLUMNS", "Line width of pictures, lists and values. The "
    .. "terminal's own width when absent, or no number from 1 on. Without a "
    .. "terminal the prompt has 80, and pictures keep their own width."},
  {"EDITRC", "Settings of the prompt's line editor; `~/.editrc` when "
    .. "absent."},
  {"LUA_PATH", "Search path of `require` for Lua files, as in stock Lua."},
  {"LUA_CPATH", "Search path of `require` for C modules, as in stock Lua."},

  {"CUTELUA_MEMERR", "N: allocation N and all later ones fail; in builds "
    .. "with -DCUTE_MEMERR.", ["for"] = "make memerr"},
  {"CUTELUA", "The program to run; `build/cutelua` when absent.",
    ["for"] = "specs"},
  {"CUTELUA_LUA", "The Lua interpreter that runs specs; `lua5.4` when "
    .. "absent.", ["for"] = "specs"},
  {"LUA_INC", "The folder of Lua's headers, with which specs build a rock.",
    ["for"] = "specs"},
  {"CUTE_BUILD", "The build folder; `build` when absent.",
    ["for"] = "specs"},
  {"CUTE_SUMMARY", "The file for a spec's counts.", ["for"] = "specs"},
  {"CUTE_COUNTS", "The file for the counts of all specs.",
    ["for"] = "specs"},
  {"CUTE_OUT", "The output folder of specs.", ["for"] = "specs"},
  {"CUTE_SANITIZED", "Set if the program is built with sanitizers.",
    ["for"] = "specs"},
  {"CUTE_GRAPHS", "How many random control flows of PTX are compared.",
    ["for"] = "specs"},
  {"CUTE_KIT", "Set: specs run without busted, from the kit.",
    ["for"] = "make gpu"},
  {"CUTELUA_ALL", "Set: the long versions of some specs run.",
    ["for"] = "specs"},
  {"CUTELUA_SEEDS", "The number of seeds of random specs.", ["for"] = "specs"},
  {"CUTELUA_WRITE_GOLDEN", "Set: specs rewrite the emitter's texts "
    .. "instead of comparing them.", ["for"] = "specs"},
  {"CUTELUA_GOLDEN_DIR", "The golden data; `../shared/golden` when absent.",
    ["for"] = "make golden"},
  {"CUTELUA_GOLDEN_APPROX_DIR", "The golden data of approximate functions; "
    .. "`golden-approx` beside the others when absent.",
    ["for"] = "make golden"},
  {"CUTELUA_GOLDEN_HOPPER_DIR", "The golden data of Hopper; `golden-hopper` "
    .. "beside the others when absent.", ["for"] = "make golden"},
  {"CUTELUA_GOLDEN_PTX_DIR", "The golden data of PTX instructions; "
    .. "`golden-ptx` beside the others when absent.",
    ["for"] = "make golden"},
  {"CUTELUA_GOLDEN_BLACKWELL_DIR", "The golden data of Blackwell; "
    .. "`golden-blackwell` beside the others when absent.",
    ["for"] = "make golden"},
  {"CUTELUA_NAMES_FILE", "The list of the Python DSL's names; "
    .. "`../shared/dsl-names.txt` when absent.", ["for"] = "make names"},
  {"CUTELUA_REFERENCE_DIR", "The reference results of benches; "
    .. "`../shared/reference` when absent.", ["for"] = "make bench"},
  {"FUZZ_SECONDS", "Seconds that each target of `make fuzz` runs; 60 when "
    .. "absent.", ["for"] = "make fuzz"},
}
-- SPDX-License-Identifier: MIT
