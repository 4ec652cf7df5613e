-- docs/errors.md: every wrong example raises its kind, every mended one runs.
local cute = require "cute"
local report = require "cute.lang.report"
local support = require "spec.support"

-- Kinds whose examples need what is not at hand, or nothing to run.
local NOT_RUN = {["driver-error"] = "needs a GPU to fail",
  ["out-of-memory"] = "needs more memory than there is",
  ["internal"] = "has no example"}

-- Of the kinds that a pattern finds in a header, under headings of a level.
local function sections(header, pattern, level)
  local out = {}
  local text = support.read "docs/errors.md"
  for kind in support.read(header):gmatch(pattern) do
    local _, at = text:find(("\n%s %s\n"):format(level, kind), 1, true)
    assert(at, kind .. " is missing")
    local body = text:sub(at, (text:find("\n##+ ", at) or 0) - 1)
    out[#out + 1] = {
      kind = kind,
      wrong = {body:match "Wrong:\n\n```(%a+)\n(.-)```"},
      mended = {body:match "Mended:\n\n```(%a+)\n(.-)```"}}
  end
  assert(out[1], header .. " has no kinds")
  return out
end

local function launch(opts, f, ...)
  cute.kernel("k", f)(...):launch {grid = opts.grid or 1,
    block = opts.block or 32, cluster = opts.cluster,
    pdl = opts.pdl, budget = opts.budget, device = "sim"}
end

local function run(x, ...)
  if type(x) == "function" then return launch({}, x, ...) end
  launch(x, ...)
end

-- Runs a Lua example: an error's text, or nil.
local function run_lua(text, name)
  local env = setmetatable({run = run, cute = cute,
    X = cute.zeros({32, 32}, cute.f32)}, {__index = _G})
  local path = support.folder() .. "/" .. name .. ".lua"
  support.write(path, text)  -- a file: the tracer reads it
  local f = assert(load(text .. "\nmessage = message or nil "
    .. "if made == nil and message then error(message, 0) end",
    "@" .. path, "t", env))
  local ok, err = pcall(f)
  support.remove((path:gsub("/[^/]*$", "")))
  return not ok and report.format(tostring(err)) or nil
end

-- Runs a command of the shell: standard error's first line, or nil.
local function run_sh(text)
  local dir = support.folder()
  support.write(dir .. "/A.txt", "no array")
  require "cute.npy".write(dir .. "/A.npy", {dtype = "f32", shape = {8, 16},
    bytes = cute.buffer("f32", 128):fill_normal(1):bytes()})
  local words = {}
  for word in text:gsub("#[^\n]*", ""):gmatch "%S+" do
    words[#words + 1] = word:find "^A%." and dir .. "/" .. word or word
  end
  assert.equal("cutelua", table.remove(words, 1))
  local _, err, code = support.run(words, {
    env = {CUTELUA_NO_CUDA = text:find "no CUDA" and "1" or nil}})
  support.remove(dir)
  return code ~= 0 and err:match "^[^\n]*" or nil
end

local function result(example, kind)
  local text = (example[1] == "sh" and run_sh or run_lua)(example[2], kind)
  return text and text:match "^[^\n]*"
end

local has_nvrtc = cute.jit.version() ~= nil

describe("docs/errors.md", function()
  for _, s in ipairs(sections("core/sim/kinds.h", '\n%s+SK%([%w_]+, "([^"]+)"',
                              "###")) do
    it("a report, wrong: " .. s.kind, function()
      local text = assert(run_lua(s.wrong[2], s.kind), "no fault")
      assert.truthy(text:find("[" .. s.kind .. "]", 1, true), text)
    end)
    it("a report, mended: " .. s.kind, function()
      assert.is_nil((run_lua(s.mended[2], s.kind)))
    end)
  end

  for _, s in ipairs(sections("core/base/errors.h", '\nERR%([%w_]+, "([^"]+)"',
                              "##")) do
    local skip = NOT_RUN[s.kind] or not has_nvrtc and s.kind == "compile-failed"
      or s.kind == "no-gpu" and cute.device "gpu" and "there is one"
    if not skip then
      it("wrong: " .. s.kind, function()
        local message = result(s.wrong, s.kind)
        assert.truthy(message, "no error")
        assert.truthy(message:find("[" .. s.kind .. "]", 1, true), message)
      end)
      it("mended: " .. s.kind, function()
        assert.is_nil((result(s.mended, s.kind)))
      end)
    end
  end
end)
