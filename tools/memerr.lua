-- memerr.lua PROGRAM [SCRIPT]: runs a script repeatedly until it succeeds. In
-- each run one allocation fails: number 1, 2, 3, ... (this needs a build with
-- CUTE_MEMERR). Each run must end by itself, successfully or with an error, but
-- never by a signal.
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
  -- The loop tries every early allocation. Of the later ones it tries a sample,
  -- which has both even and odd numbers.
  n = n + 1 + n // 150
end
print(("%s: gets through with %d allocations; %d bad ends"):format(script, n,
  bad))
os.exit(bad == 0)
-- SPDX-License-Identifier: MIT
