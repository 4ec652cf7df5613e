-- figures.lua PROGRAM: draws the pictures of README.md: docs/pipeline.svg, and
-- docs/race.svg from the program's output. `make docs` calls it.
local figures = {}

local function escape(text)
  return (text:gsub("[&<>]", {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;"}))
end

-- Returns the first lines of an SVG of this size and style.
local function open_svg(width, height, style)
  return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
    .. 'viewBox="0 0 %d %d">\n<style>%s</style>'):format(width, height, width,
    height, style)
end

-- Returns a picture of a terminal that shows a text. Prompts are green. Lines
-- that end in an error's kind are red.
function figures.terminal(text)
  local lines = {}
  for line in text:gmatch "([^\n]*)\n" do
    local class = line:find "^%$" and "p" or line:find "%[%l[%l-]*%]$" and "e"
      or "t"
    while #line > 86 do
      local cut = line:sub(1, 86):match ".*() "
      lines[#lines + 1] = {class, line:sub(1, cut - 1)}
      line = "        " .. line:sub(cut + 1)
    end
    lines[#lines + 1] = {class, line}
  end
  local height = #lines * 19 + 24
  local out = {open_svg(720, height,
    'text{font:13px ui-monospace,"DejaVu Sans Mono",Menlo,monospace;'
    .. "white-space:pre}.t{fill:#e6edf3}.p{fill:#7ee787}.e{fill:#ff7b72}"),
    ('<rect width="720" height="%d" rx="8" fill="#0d1117"/>'):format(height)}
  for i, line in ipairs(lines) do
    out[#out + 1] = ('<text class="%s" x="16" y="%d" xml:space="preserve">%s'
      .. "</text>"):format(line[1], i * 19 + 9, escape(line[2]))
  end
  return table.concat(out, "\n") .. "\n</svg>\n"
end

-- The boxes of the pipeline: x, y, colour, name, explanation.
local BOXES = {
  {10, 70, "#dbeafe", "Lua", "a kernel is a function"},
  {190, 70, "#dbeafe", "trace", "loops, branches, atoms"},
  {370, 70, "#fef3c7", "IR", "one table of operations"},
  {550, 10, "#dcfce7", "CUDA C", "NVRTC, driver, GPU"},
  {550, 130, "#fee2e2", "simulator", "CPU, all checks"},
}
local ARROWS = {
  {160, 100, 186, 100}, {340, 100, 366, 100}, {520, 90, 546, 50},
  {520, 110, 546, 150},
}

-- Returns the picture of the steps from Lua to CUDA C and to the simulator.
function figures.pipeline()
  local out = {open_svg(710, 200,
    "text{font:12px system-ui,sans-serif;fill:#1f2328;text-anchor:middle}"
    .. ".n{font-weight:600;font-size:15px}rect{stroke:#8c959f}"
    .. "path{fill:#8c959f}.a{stroke:#8c959f;stroke-width:2;fill:none;"
    .. "marker-end:url(#a)}"),
    '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" '
    .. 'markerWidth="6" markerHeight="6" orient="auto">'
    .. '<path d="M0 0L8 4L0 8z"/></marker></defs>'}
  for _, b in ipairs(BOXES) do
    local x, y, colour, name, about = table.unpack(b)
    out[#out + 1] = ('<rect x="%d" y="%d" width="150" height="60" rx="8" '
      .. 'fill="%s"/>\n<text class="n" x="%d" y="%d">%s</text>\n'
      .. '<text x="%d" y="%d">%s</text>'):format(x, y, colour, x + 75, y + 26,
      name, x + 75, y + 46, about)
  end
  for _, a in ipairs(ARROWS) do
    out[#out + 1] = ('<path class="a" d="M%d %dL%d %d"/>')
      :format(table.unpack(a))
  end
  return table.concat(out, "\n") .. "\n</svg>\n"
end

-- Returns a picture of what the program prints for README.md's example kernel
-- if its barrier is removed.
function figures.race(program)
  local examples = dofile "tools/examples.lua"
  local f <close> = assert(io.open "README.md")
  local kernel = f:read "a":match "<!%-%- file reverse%.lua.-\n```lua.-```\n"
  local text = kernel .. "<!-- output: sed /sync_threads/d reverse.lua "
    .. ">race.lua; echo '$ cutelua race.lua'; cutelua race.lua -->\n"
    .. "```text\n```\n"
  return figures.terminal(examples.filled(text, program)
    :match "```text\n(.-)```")
end

if arg and arg[0] and arg[0]:find "figures%.lua$" then
  for name, text in pairs {pipeline = figures.pipeline(),
                           race = figures.race(arg[1])} do
    local f <close> = assert(io.open("docs/" .. name .. ".svg", "wb"))
    assert(f:write(text))
  end
end

return figures
-- SPDX-License-Identifier: MIT
