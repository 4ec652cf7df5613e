-- Fuzzes the parser and the algebra with libFuzzer under the address and
-- undefined-behaviour sanitizers: `layout.lua SECONDS`. Needs clang.
local seconds = tonumber(arg[1]) or 60
local build = (os.getenv "CUTE_BUILD" or "build") .. "/fuzz"

local SOURCES = {}
for _, room in ipairs {"base", "atoms", "ir", "layout"} do
  local p <close> = io.popen("ls core/" .. room .. "/*.c")
  for path in p:lines() do SOURCES[#SOURCES + 1] = path end
end

local function run(fmt, ...)
  local command = fmt:format(...)
  if not os.execute(command) then
    io.stderr:write("failed: ", command, "\n")
    os.exit(1)
  end
end

if not os.execute "command -v clang >/dev/null" then
  io.stderr:write("make fuzz needs clang (apt-get install clang)\n")
  os.exit(1)
end
run("mkdir -p %s/layout-corpus", build)
run("clang -std=c11 -g -O1 -Icore -fsanitize=fuzzer,address,undefined " ..
    "-fno-sanitize-recover=undefined spec/layout/fuzz.c %s -lm -o %s/layout",
    table.concat(SOURCES, " "), build)
run("cd %s && ./layout -max_total_time=%d -max_len=200 -timeout=10 " ..
    "-rss_limit_mb=2000 -print_final_stats=1 -verbosity=0 layout-corpus 2>&1",
    build, seconds)
print(("layout: %d seconds without a crash, a leak or a wrong answer")
  :format(seconds))
-- SPDX-License-Identifier: MIT
