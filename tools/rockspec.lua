-- rockspec.lua [write]: compares the rockspec's version with VERSION, and its
-- modules with the files. Prints the differences. With `write`, also corrects
-- them.
local version_file <close> = assert(io.open "VERSION")
local VERSION = version_file:read "l" .. "-1"
local PATH = ("cutelua-%s.rockspec"):format(VERSION)

local function list(pattern)
  local out = {}
  local p <close> = io.popen("ls " .. pattern .. " 2>/dev/null")
  for path in p:lines() do out[#out + 1] = path end
  table.sort(out)
  return out
end

local function module_list()
  local out = {"    lua = {"}
  for _, path in ipairs(list("lua/*/*.lua lua/*/*/*.lua "
      .. "lua/*/*/*/*.lua kernels/*.lua kernels/*/*.lua")) do
    local name = path:gsub("^lua/", ""):gsub("%.lua$", ""):gsub("/", ".")
      :gsub("%.init$", "")
    out[#out + 1] = ('      ["%s"] =\n        "%s",'):format(name, path)
  end
  out[#out + 1] = "    },"
  return table.concat(out, "\n") .. "\n"
end

local f <close> = io.open(PATH)
if not f then
  print(PATH .. " is missing: VERSION and the rockspec's name differ")
  os.exit(false)
end
local text = f:read "a"
local from = text:find("    lua = {", 1, true)
local new = text:sub(1, from - 1):gsub('\nversion = "[^"]*"',
  '\nversion = "' .. VERSION .. '"') .. module_list() .. "  },\n}\n"
if arg[1] == "write" then
  local g <close> = assert(io.open(PATH, "w"))
  g:write(new)
else
  local have, wrong = {}, false
  local function complain(what)
    wrong = true
    print(("%s: %s"):format(PATH, what))
  end
  if not text:find('\nversion = "' .. VERSION .. '"', 1, true) then
    complain("has another version than " .. VERSION)
  end
  for path in text:gmatch '"([^"\n]+%.lua)"' do have[path] = true end
  for path in new:gmatch '"([^"\n]+%.lua)"' do
    if not have[path] then complain("lacks " .. path) end
    have[path] = nil
  end
  for path in pairs(have) do complain(path .. " is not there") end
  if wrong then complain "run `lua5.4 tools/rockspec.lua write`" end
  os.exit(not wrong)
end
-- SPDX-License-Identifier: MIT
