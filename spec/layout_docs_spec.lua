-- The worked examples of docs/layouts.md give what the page says.
local cute = require "cute"

-- {line number, code, expected or nil} of every line in a ```lua block.
local function examples(path)
  local list, number, inside = {}, 0, false
  for line in io.lines(path) do
    number = number + 1
    if line:find "^```" then
      inside = line == "```lua"
    elseif inside and line:find "%S" then
      local code, want = line:match "^(.-)%s*%-%->%s(.*)$"
      list[#list + 1] = {number, code or line, want}
    end
  end
  return list
end

describe("docs/layouts.md", function()
  local env = setmetatable({cute = cute}, {__index = _G})
  local list = examples "docs/layouts.md"

  it("has examples", function() assert.is_true(#list > 120) end)

  for _, e in ipairs(list) do
    local number, code, want = table.unpack(e, 1, 3)
    it(("line %d: %s"):format(number, code), function()
      local chunk = want and "return " .. code or code
      local f = assert(load(chunk, "=docs", "t", env))
      local got = table.pack(f())
      for i = 1, got.n do got[i] = tostring(got[i]) end
      if want then assert.equal(want, table.concat(got, ", ")) end
    end)
  end

  it("has an example of every function", function()
    local text = {}
    for _, e in ipairs(list) do text[#text + 1] = e[2] end
    text = table.concat(text, "\n")
    for name in ([[make_layout make_ordered_layout make_layout_like
        make_fragment_like make_identity_layout make_composed_layout
        make_layout_tv make_layout_image_mask size rank depth shape stride
        cosize coshape max_alignment get_swizzle_portion is_static
        get_nonswizzle_portion get_divisibility crd2idx get_hier_coord
        get_flat_coord get_1d_coord slice_ dice slice_and_offset
        domain_offset coalesce filter right_inverse left_inverse nullspace
        complement with_shape max_common_layout max_common_vector
        domain_distribute composition logical_divide zipped_divide
        tiled_divide flat_divide logical_product zipped_product
        tiled_product flat_product tile_unzip blocked_product raked_product
        tile_to_shape ceil_div upcast downcast recast_layout get select take
        group group_modes flatten unflatten append prepend replace zip
        filter_zeros flatten_to_tuple product_each product_like wrap unwrap
        reverse make_basis_like sum min max gcd front back remove insert
        repeat_like repeat_as_tuple tuple_cat get_leaves find shape_div
        round_up elem_scale inner_product increment_coord congruent
        weakly_congruent compatible weakly_compatible evenly_divides
        has_underscore is_integer is_int_tuple lex_less colex_less elem_less
        idx2crd crd2crd compact_col_major compact_row_major compact_order
        is_major leading_dim make_swizzle E basis_value basis_get layout
        transform_leaf find_if filter_tuple pretty_str size_in_bytes assume
        make_tensor make_identity_tensor local_tile local_partition
        inner_partition outer_partition recast_tensor zeros ones_like
        zeros_like full_like ScaledBasis ArithmeticTuple]])
        :gmatch "%S+" do
      assert.is_truthy(text:find("cute." .. name .. "[ (]"), name)
    end
  end)
end)

describe("annotations", function()
  it("are of functions that exist, and of nearly all of them", function()
    local n = 0
    local own = {Layout = cute.make_layout(8),
                 Tensor = cute.zeros({8}, cute.f32)}
    for _, file in ipairs {"layout", "tensor"} do
      for line in io.lines("lua/cute/" .. file .. "_meta.lua") do
        local name = line:match "^function cute%.([%w_]+)%("
        if name then
          n = n + 1
          assert.equal("function", type(cute[name]), name)
        end
        local class, method = line:match "^(%u%a+)%.([%w_]+) ="
        if not class then
          class, method = line:match "^function (%u%a+):([%w_]+)"
        end
        if method then assert.is_truthy(own[class][method], method) end
      end
    end
    assert.is_true(n > 140, n)
  end)
end)
