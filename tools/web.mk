# web.mk, called by `make web`: builds the program as WebAssembly, by
# emscripten, with Lua and zlib from the sources of Debian's packages, and the
# workshop's page. Objects go to $(BUILD)/wasm, sources to its source/, the
# served files to $(BUILD)/web. THREADS=-threads builds the program whose
# simulator has threads, with its own folder of objects.
WEB     := $(BUILD)/web
SOURCE  := $(BUILD)/wasm/source
PROGRAM_JS := $(WEB)/cutelua$(THREADS).js
ALL     := $(BUILD)
override BUILD := $(ALL)/wasm$(THREADS)
EMCC    := emcc
# A visitor downloads the program, so documents and bytecode are left out.
override DOCS :=
override BYTECODE :=
override CFLAGS := -O3 -msimd128 $(if $(THREADS),-pthread)
# Threads cannot be created while the program runs, so a pool of threads is
# created before.
POOL    := $(if $(THREADS),-sPTHREAD_POOL_SIZE_STRICT=2 -Wno-pthreads-mem-growth \
             -sPTHREAD_POOL_SIZE='(Module.threads||2)-1||1')
LUA_INC = $(wildcard $(SOURCE)/lua5.4-*/src)
Z_INC = $(wildcard $(SOURCE)/zlib-*)
DEFS = -I$(Z_INC)
# Inputs of every object besides its own source and arguments.
export CUTE_INPUTS := $(shell { $(EMCC) --version; cat core/*/*.h core/*/*.cu \
  $(addsuffix /*.h,$(LUA_INC) $(Z_INC)); } 2>/dev/null | sha256sum)
# Objects are compiled by emcc's clang with emcc's flags: the Python program
# emcc takes three times as long as clang takes for most files.
CLANG := $(shell $(EMCC) -v -c -xc /dev/null -o /dev/null 2>&1 | \
           sed -n 's/^ "\([^"+]*\)\(++\)\{0,1\}\([^"]*\)" -target .*/\1\3/p')
override CC := sh tools/cached.sh $(or $(CLANG),$(EMCC)) \
  $(if $(CLANG),$(shell $(EMCC) $(filter -pthread,$(CFLAGS)) --cflags))
export NODE_PATH ?= /usr/share/nodejs

web-program: $(PROGRAM_JS)
include Makefile
# Position-independent code is slower here.
CSTD := $(filter-out -fPIC -I%,$(CSTD)) -Icore -I$(BUILD)
CSTD += $(addprefix -I,$(LUA_INC)) $(DEFS)

# A separate run of make fetches the sources (target web-source). A later run
# then finds them: make lists the existing files when it reads this file.
web-source: $(SOURCE)/stamp
$(SOURCE)/stamp: tools/source.sh
	sh tools/source.sh $(@D) lua5.4 liblua5.4-dev
	sh tools/source.sh $(@D) zlib zlib1g-dev
	cd $(@D)/lua5.4-*/src && \
	  echo '#define DEB_HOST_MULTIARCH "wasm"' >lua5.4-deb-multiarch.h
	touch $@

LUA_C := $(filter-out lua.c luac.c,$(notdir $(wildcard $(LUA_INC)/*.c)))
Z_C   := adler32.c crc32.c deflate.c inffast.c inflate.c inftrees.c trees.c \
           zutil.c
THEIRS := $(patsubst %.c,$(BUILD)/theirs/%.o,$(LUA_C) $(Z_C))
vpath %.c $(LUA_INC) $(Z_INC)
$(THEIRS): $(BUILD)/theirs/%.o: %.c tools/web.mk
	@mkdir -p $(@D)
	@echo 'CC $<'
	$(CC) $(CFLAGS) -DLUA_USE_POSIX -DLUA_COMPAT_5_3 -c $< -o $@

WEB_OBJ := $(OBJ) $(filter-out %/linelib.o,$(POBJ)) $(BUILD)/program/weblib.o \
             $(THEIRS)
# The linker runs at -O1, which omits an optimizer that takes 20 s. With the
# optimizer, programs are neither faster nor smaller when packed.
$(PROGRAM_JS): $(WEB_OBJ) tools/web.mk | $(WEB)
	@echo 'LD $@'
	$(EMCC) $(CFLAGS) -O1 -o $@ $(WEB_OBJ) -lm $(POOL) -sALLOW_MEMORY_GROWTH=1 \
	  -sMODULARIZE=1 -sEXPORT_NAME=cutelua -sEXIT_RUNTIME=1 \
	  -sEXPORTED_FUNCTIONS=_main,_malloc,_free \
	  -sEXPORTED_RUNTIME_METHODS=FS,ccall,UTF8ToString,stringToUTF8,lengthBytesUTF8
-include $(BUILD)/program/weblib.d

# ---- the page ----

# CodeMirror 5 of Debian's libjs-codemirror, in one file.
EDITOR := /usr/share/javascript/codemirror
EDITOR_JS := $(addprefix $(EDITOR)/,lib/codemirror.js mode/lua/lua.js \
  $(addprefix addon/,hint/show-hint.js edit/matchbrackets.js \
    search/searchcursor.js search/search.js dialog/dialog.js \
    comment/comment.js display/placeholder.js))
EDITOR_CSS := $(addprefix $(EDITOR)/,lib/codemirror.css \
  addon/hint/show-hint.css addon/dialog/dialog.css)

$(WEB):
	mkdir -p $@
$(WEB)/codemirror.js: $(EDITOR_JS) tools/web.mk | $(WEB)
	cat $(EDITOR_JS) >$@
$(WEB)/codemirror.css: $(EDITOR_CSS) tools/web.mk | $(WEB)
	cat $(EDITOR_CSS) >$@
$(WEB)/codemirror-LICENSE.txt: /usr/share/doc/libjs-codemirror/copyright | $(WEB)
	cp $< $@

PAGE := $(patsubst web/%,$(WEB)/%,$(filter-out %.md,$(wildcard web/*)))
$(PAGE): $(WEB)/%: web/% | $(WEB)
	cp $< $@

$(BUILD)/wasm.txt: $(PROGRAM_JS)
	gzip -9nc $(PROGRAM_JS:.js=.wasm) | base64 -w0 >$@

SHOWN := $(wildcard scripts/*.lua kernels/*.lua)
$(WEB)/workshop.html: tools/web.lua spec/web/run.js $(BUILD)/wasm.txt \
  $(PAGE) $(WEB)/codemirror.js $(WEB)/codemirror.css $(PROGRAM_JS) $(SHOWN)
	node --no-experimental-fetch spec/web/run.js $(PROGRAM_JS) $^ \
	  --out $(WEB) -- $< /out $(filter-out $< %/run.js,$^)

web-files: $(WEB)/workshop.html $(WEB)/codemirror-LICENSE.txt
	@cd $(WEB) && for f in *; do \
	  printf '%9d bytes, %8d packed  %s\n' "$$(wc -c <$$f)" \
	    "$$(gzip -9nc $$f | wc -c)" "$(WEB)/$$f"; done
.PHONY: web-program web-source web-files
# SPDX-License-Identifier: MIT
