-- Bundles that specs make, compile and run with the fake driver.
local support = require "spec.support"

local made = {}

local BASE = "core/base/tensormap.c core/base/dtype.c core/base/base.c "
  .. "core/base/heap.c"

--- Reports whether a compiler is present.
function made.has(compiler)
  return select(3, support.exec {compiler, "--version"}) == 0
end

-- Splits each argument into words. Returns a list of all words.
local function words_of(...)
  local list = {}
  for _, text in ipairs {...} do
    for w in text:gmatch "%S+" do list[#list + 1] = w end
  end
  return list
end

--- Runs a command line and returns its output. Raises an error if it fails or
-- prints to standard error.
function made.must(...)
  local out, err, code = support.exec(words_of(...))
  assert(code == 0 and err == "", err .. out)
  return out
end

--- Reports whether programs compiled with these sanitizer flags run on this
-- machine.
function made.sanitizes(flags)
  local folder = support.folder()
  local name = support.write(folder .. "/x.c", "int main(void) { return 0; }")
  local _, _, code = support.exec(words_of("cc " .. flags .. " -o", folder
    .. "/x", name))
  if code == 0 then code = select(3, support.exec {folder .. "/x"}) end
  support.remove(folder)
  return code == 0
end

--- Runs `cutelua bundle` with these words; returns output, errors and code.
function made.bundle(...)
  return support.exec(words_of(support.program .. " bundle", ...),
                      {env = {CUTELUA_NO_CUDA = "0"}})
end

--- Builds the fake driver, and returns its folder. flags: further flags for the
-- compiler. lua: builds the driver for Lua programs.
function made.driver(flags, lua)
  local folder = support.folder()
  made.must("cc -shared -fPIC -Icore -g " .. (flags or ""),
    lua and "-DLUA_SIDE" or "", "-o " .. folder .. "/libcuda.so.1",
    "spec/bundle/fakecuda.c", lua and "" or BASE)
  return folder
end

--- Runs a program with the fake driver in `folder`; returns output, errors,
-- code.
function made.run(folder, program, env)
  local all = {LD_LIBRARY_PATH = folder, CUTELUA_NO_CUDA = "0"}
  for k, v in pairs(env or {}) do all[k] = v end
  return support.exec(words_of(program), {env = all})
end

return made
-- SPDX-License-Identifier: MIT
