std = "lua54"
max_line_length = 80
files["spec"] = {std = "+busted", max_line_length = 100}
files["spec"].ignore = {"211/_.*"}
files["examples/lua"] = {globals = {"host"}}
files["kernels"].ignore = {"21[123]/_.*"}
files["scripts"].ignore = {"21[123]/_.*"}
files["spec/faults"].ignore = {"21[123]", "31[123]", "43[123]"}  -- documents show them
