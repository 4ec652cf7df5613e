-- Tests docs/errors.md: every wrong example must raise its kind of error, and
-- every corrected one must run. Examples in Lua are scripts that
-- cute.lang.kinds lists; spec/faults/faults_spec.lua runs them. Examples that
-- are shell commands run here.
local cute = require "cute"
local faults = require "spec.faults"
local kinds = require "cute.lang.kinds"
local support = require "spec.support"

-- Kinds whose examples do not run here, with the reason.
local NOT_RUN = {["driver-error"] = "needs a GPU to fail",
  ["out-of-memory"] = "needs more memory than there is",
  ["internal"] = "has no example"}

-- Returns the sections of docs/errors.md for the kinds in `rows`. `level` is
-- the Markdown prefix of their headings, such as "##".
local function sections(rows, level)
  local out = {}
  local text = support.read "docs/errors.md"
  for i, row in ipairs(rows) do
    local _, at = text:find(("\n%s %s\n"):format(level, row.kind), 1, true)
    assert(at, row.kind .. " is missing")
    local body = text:sub(at, (text:find("\n##+ ", at) or 0) - 1)
    out[i] = {
      kind = row.kind, example = row.example,
      wrong = {body:match "Wrong:\n\n```(%a+)\n(.-)```"},
      mended = {body:match "Mended:\n\n```(%a+)\n(.-)```"}}
  end
  return out
end

-- Runs a shell command. Returns the first line of standard error, or nil.
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

-- Checks that a script ends with the example that docs/errors.md shows.
local function shows(path, name, block, mend)
  local text = faults.version(assert(support.read(path), path), mend)
  assert.equal(block, text:sub(-#block),
    ("docs/errors.md, %s, and %s differ"):format(name, path))
end

local function both(s)
  local path = ("spec/faults/%s.lua"):format(s.example)
  it("shows the text of " .. path, function()
    shows(path, "Wrong", s.wrong[2], false)
    shows(path, "Mended", s.mended[2], true)
  end)
end

describe("docs/errors.md", function()
  for _, s in ipairs(sections(kinds.FAULTS, "###")) do both(s) end

  for _, s in ipairs(sections(kinds.ERRORS, "##")) do
    if NOT_RUN[s.kind] then goto next end
    if s.example ~= "docs/errors.md" then
      both(s)
      goto next
    end
    if s.kind ~= "no-gpu" or not cute.device "gpu" then
      it("wrong: " .. s.kind, function()
        local message = run_sh(s.wrong[2])
        assert.truthy(message, "no error")
        assert.truthy(message:find("[" .. s.kind .. "]", 1, true), message)
      end)
      it("mended: " .. s.kind, function()
        assert.is_nil((run_sh(s.mended[2])))
      end)
    end
    ::next::
  end
end)
-- SPDX-License-Identifier: MIT
