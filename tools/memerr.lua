-- memerr.lua PROGRAM [SCRIPT]: runs a script with allocation 1, 2, 3, ...
-- failing (a build with CUTE_MEMERR) until it succeeds. Each run must end by
-- itself, with an error or successfully, never by a signal.
local program, script = arg[1], arg[2] or "spec/memerr.lua"

local function run(n)
  local _, how, code = os.execute(("CUTELUA_MEMERR=%d %s %s >/dev/null 2>&1")
    :format(n, program, script))
  return how == "exit" and code or 128 + code
end

if run(0) ~= 0 then
  print(script .. " fails without a failing allocation")
  os.exit(1)
end
local n, bad, through = 1, 0, 0
while through < 3 and n < 1 << 24 do
  local code = run(n)
  if code > 2 then
    print(("allocation %d: exit code %d"):format(n, code))
    bad = bad + 1
  end
  through = code == 0 and through + 1 or 0
  -- The loop tries every early allocation. Of the later ones it tries a sample
  -- in which both even and odd numbers occur.
  n = n + 1 + n // 150
end
print(("%s: gets through with %d allocations; %d bad ends"):format(script, n,
  bad))
os.exit(bad == 0)
-- SPDX-License-Identifier: MIT
