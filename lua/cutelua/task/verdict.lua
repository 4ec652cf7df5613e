--- Converts a referee's verdict to text, and to plain data for JSON.
local verdict = {}

local function seconds(x)
  if x < 1e-3 then return ("%.3g us"):format(x * 1e6) end
  return ("%.3g ms"):format(x * 1e3)
end

local function speed_text(s, score)
  if s.failed then return ("speed: unknown: %s"):format(s.failed) end
  local how = s.by == "gpu" and "measured, L2 cold" or "estimated, not measured"
  return ("speed: %s on %s (%s), limit %s, %.0f %% of it, target %.0f %%: "
    .. "score %d of 100"):format(seconds(s.seconds), s.card, how,
    seconds(s.limit), 100 * s.share, 100 * s.target, score)
end

local function place(f)
  local p = f.places and f.places[1]
  return p and ("%s:%d: "):format(p.file, p.line) or ""
end

--- Returns the verdict as text.
---@param v table of cutelua.task.referee
---@return string
function verdict.text(v)
  local out = {("task %s: %s: %s"):format(v.task, v.candidate, v.verdict)}
  local function add(...) out[#out + 1] = "  " .. string.format(...) end
  if v.cheat then add("cheat: %s", v.cheat) end
  if v.reason then add("reason: %s", v.reason) end
  for _, f in ipairs(v.findings) do
    add("%s%s [%s]", place(f), f.message, f.code)
  end
  for _, c in ipairs(v.cases) do
    add("%s%s%s: %s", c.held and "held back: " or "", c.name,
        c.mask and ", mask " .. c.mask or "", c.reason
        or ("ok, largest error %.2f of the bound"):format(c.error))
  end
  for _, o in ipairs(v.not_checked) do add("not covered: %s", o.text) end
  if v.speed then add("%s", speed_text(v.speed, v.score)) end
  if v.secret then add("secret %s", v.secret) end
  return table.concat(out, "\n")
end

--- Returns the verdict as plain data: docs/task.schema.json describes it.
---@param v table
---@param command string
---@param code integer
---@return table
function verdict.plain(v, command, code)
  local sys = require "cute.sys"
  local out = {form = 1, kind = "task", command = command, exit_code = code,
               tool = {name = "cutelua", version = sys.version}}
  for k, x in pairs(v) do out[k] = x end
  return out
end

return verdict
-- SPDX-License-Identifier: MIT
