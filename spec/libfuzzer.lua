--- Builds and runs libFuzzer targets under the address and undefined-behaviour
-- sanitizers. Needs clang.
local libfuzzer = {}

local function run(fmt, ...)
  local command = fmt:format(...)
  if not os.execute(command) then
    io.stderr:write("failed: ", command, "\n")
    os.exit(1)
  end
end

--- Builds a target and runs it in its folder build/fuzz, with the corpus
-- NAME-corpus. A failure ends the process with exit code 1.
---@param name string
---@param source string its C file
---@param rooms string[] the folders of core/ whose files are linked
---@param options string options of libFuzzer
---@param seed? fun(folder: string) writes the first inputs
function libfuzzer.run(name, source, rooms, options, seed)
  local build = (os.getenv "CUTE_BUILD" or "build") .. "/fuzz"
  if not os.execute "command -v clang >/dev/null" then
    io.stderr:write("make fuzz needs clang (apt-get install clang)\n")
    os.exit(1)
  end
  local sources = {}
  for _, room in ipairs(rooms) do
    local p <close> = io.popen("ls core/" .. room .. "/*.c")
    for path in p:lines() do sources[#sources + 1] = path end
  end
  run("mkdir -p %s/%s-corpus", build, name)
  run("clang -std=c11 -g -O1 -Icore -fsanitize=fuzzer,address,undefined "
    .. "-fno-sanitize-recover=undefined %s %s -lm -o %s/%s", source,
    table.concat(sources, " "), build, name)
  if seed then seed(build .. "/" .. name .. "-corpus") end
  run("cd %s && ./%s %s -timeout=10 -rss_limit_mb=2000 -print_final_stats=1 "
    .. "-verbosity=0 %s-corpus 2>&1", build, name, options, name)
end

return libfuzzer
-- SPDX-License-Identifier: MIT
