"""Operations of torch whose implementation is a Lua script."""
import re

import torch

from ._core import (
    Error, GradientError, Module, NAMES, default, make_error)

_LIBRARIES = {}
_DTYPES = {v: getattr(torch, k) for k, v in NAMES.items()
           if hasattr(torch, k)}
# Whether torch lacks DLPack's exchange interface in C (before 2.10).
_OLD = not hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
_OURS = {v: k for k, v in _DTYPES.items()}


def _library(namespace):
    if namespace not in _LIBRARIES:
        _LIBRARIES[namespace] = torch.library.Library(namespace, "FRAGMENT")
    return _LIBRARIES[namespace]


def _split(text):
    """Splits a list at commas outside of brackets."""
    return [p.strip() for p in re.split(r",(?![^(\[]*[)\]])", text)
            if p.strip()]


class _Schema:
    """The parameters and results of a schema, "(Tensor x, float a) -> Tensor".
    """

    def __init__(self, text):
        m = re.fullmatch(r"\s*\((.*)\)\s*->\s*(.*?)\s*", text, re.S)
        if not m:
            raise make_error("the schema %r is not of the form "
                             "\"(Tensor x, float a) -> Tensor\"" % text)
        self.text = text.strip()
        self.parameters = _split(m[1])
        self.tensors = [p.split()[0] in ("Tensor", "Tensor?")
                        for p in self.parameters]
        result = m[2]
        if result.startswith("("):
            self.results = len(_split(result[1:-1]))
        else:
            self.results = 1
        if "!" in text or "[]" in result or "*" in m[1]:
            raise make_error("the schema %r: an operation that changes its "
                             "arguments, returns a list or has parameters "
                             "after * is not supported" % text)


def _default_schema(names):
    return "(%s) -> Tensor" % ", ".join("Tensor " + n for n in names)


def _evaluate(text, values):
    """Computes an extent, an expression of + - * // % that Lua wrote."""
    return eval(text, {"__builtins__": {}}, values)


def _stand_ins(args):
    out, extents = [], {}
    for i, x in enumerate(args):
        if isinstance(x, torch.Tensor):
            out.append({"tensor": i + 1, "rank": x.dim(),
                        "dtype": _OURS.get(x.dtype, str(x.dtype))})
            for k, n in enumerate(x.shape):
                extents["s%d_%d" % (i + 1, k + 1)] = n
        elif isinstance(x, (bool, int, float, str)) or x is None:
            out.append(x)
        else:  # a torch.SymInt and its kin
            out.append(float(x) if isinstance(x, torch.SymFloat) else int(x))
    return out, extents


def _results(values):
    """Returns a list as a function of torch does: one value, or a tuple."""
    return values[0] if len(values) == 1 else tuple(values)


class Op:
    """An operation of torch that cutelua.op registered; call it as a function.
    """

    def __init__(self, name, module, schema):
        self.module = module
        namespace, _, base = name.rpartition("::")
        namespace = namespace or "cutelua"
        state = module._cutelua_state
        parts = vars(module)
        self.forward = parts.get("forward") or parts.get(base)
        if self.forward is None:
            raise make_error("the script %s has neither a function forward nor "
                             "%s" % (module.__file__, base), "unknown-name")
        text = schema or parts.get("schema") or _default_schema(
            state._run("arity", self.forward) or [])
        self.schema = s = _Schema(text)
        self.fake = parts.get("fake")
        self.backward = parts.get("backward")
        self.name = "%s::%s" % (namespace, base)
        self._state = state
        library = _library(namespace)
        library.define(base + s.text)
        library.impl(base, self._implementation(self.forward, s.results),
                     "CompositeExplicitAutograd")
        torch.library.register_fake(self.name, self._fake, lib=library)
        if self.backward:
            self._register_backward(library, namespace, base)
        else:
            library.impl(base, self._without_backward, "Autograd",
                         with_keyset=True)
        self.op = getattr(getattr(torch.ops, namespace), base).default
        self.__name__ = base

    def __call__(self, *args, **options):
        return self.op(*args, **options)

    def __repr__(self):
        return "<cutelua operation %s of torch>" % self.name

    def _implementation(self, f, results):
        run = f._without_grad()

        def implementation(*args):
            if _OLD:
                args = [x.detach() if isinstance(x, torch.Tensor) else x
                        for x in args]
            out = run(*args)
            n = len(out) if type(out) is tuple else 1
            if n != results or not all(isinstance(t, torch.Tensor) for t in (
                    out if n > 1 else (out,))):
                raise make_error("%s returned %s; the schema of %s has %d "
                                 "tensors" % (f.name, out, self.name, results),
                                 "type-mismatch")
            return out
        return implementation

    def _fake(self, *args):
        if not self.fake:
            first = next((x for x in args if isinstance(x, torch.Tensor)), None)
            if first is None:
                raise make_error("%s has no tensor argument: its script needs "
                                 "a function fake" % self.name)
            out = [first.new_empty(first.shape)
                   for _ in range(self.schema.results)]
            return _results(out)
        stand_ins, extents = _stand_ins(args)
        shapes = self._state._run("shapes", self.fake, *stand_ins)
        if len(shapes) != self.schema.results:
            raise make_error("fake of %s returned %d results; the schema has %d"
                             % (self.name, len(shapes), self.schema.results))
        device = next(x.device for x in args if isinstance(x, torch.Tensor))
        out = [torch.empty([_evaluate(n, extents) for n in s["shape"][:-1]],
                           dtype=_DTYPES[s["dtype"]], device=device)
               for s in shapes]
        return _results(out)

    def _without_backward(self, keyset, *args):
        if torch.is_grad_enabled() and any(
                isinstance(x, torch.Tensor) and x.requires_grad for x in args):
            raise GradientError("%s has no backward, but an argument requires "
                                "a gradient: add a function backward to %s, or "
                                "write torch.no_grad()"
                                % (self.name, self.module.__file__))
        with torch._C._AutoDispatchBelowAutograd():
            return self.op.redispatch(
                keyset & torch._C._after_autograd_keyset, *args)

    def _register_backward(self, library, namespace, base):
        s, back = self.schema, base + "_backward"
        wanted = [i for i, p in enumerate(s.parameters)
                  if p.split()[0] == "Tensor"]
        grads = ["Tensor grad%d" % i for i in range(s.results)]
        outs = ["Tensor out%d" % i for i in range(s.results)]
        count = len(self._state._run("arity", self.backward) or [])
        with_outputs = count > s.results + len(s.parameters)
        parameters = [p.split("=")[0] for p in s.parameters]
        text = "(%s) -> %s" % (
            ", ".join(grads + parameters + (outs if with_outputs else [])),
            "Tensor" if len(wanted) == 1 else "(%s)" % ", ".join(
                "Tensor" for _ in wanted))
        library.define(back + text)
        library.impl(back, self._implementation(self.backward, len(wanted)),
                     "CompositeExplicitAutograd")
        first = s.results

        def fake(*args):
            out = [torch.empty(args[first + i].shape,
                               dtype=args[first + i].dtype,
                               device=args[first + i].device) for i in wanted]
            return _results(out)

        torch.library.register_fake("%s::%s" % (namespace, back), fake,
                                    lib=library)
        run = getattr(getattr(torch.ops, namespace), back)

        def setup_context(ctx, inputs, output):
            outputs = output if isinstance(output, tuple) else (output,)
            ctx.rest = [None if isinstance(x, torch.Tensor) else x
                        for x in inputs]
            ctx.save_for_backward(*(x for x in inputs
                                    if isinstance(x, torch.Tensor)),
                                  *(outputs if with_outputs else ()))
            ctx.shapes = [(o.shape, o.dtype, o.device) for o in outputs]

        def backward(ctx, *grads):
            saved = list(ctx.saved_tensors)
            inputs = [saved.pop(0) if t and r is None else r
                      for t, r in zip(s.tensors, ctx.rest)]
            full = [torch.zeros(shape, dtype=dtype, device=device)
                    if g is None else g.contiguous()
                    for g, (shape, dtype, device) in zip(grads, ctx.shapes)]
            out = run(*full, *inputs, *saved)
            out = list(out) if isinstance(out, (tuple, list)) else [out]
            result = [None] * len(s.parameters)
            for i, g in zip(wanted, out):
                result[i] = g if ctx.needs_input_grad[i] else None
            return _results(result)

        torch.library.register_autograd(self.name, backward,
                                        setup_context=setup_context,
                                        lib=library)


def op(name, script, schema=None):
    """Registers an operation of torch, and returns it.

    name: "gelu" (then torch.ops.cutelua.gelu) or "mine::gelu". script: the
    path of a Lua script, or the result of cutelua.load. It has

    - forward (or a function of the operation's name): takes the arguments, and
      returns the results;
    - schema, unless the argument `schema` gives it: "(Tensor x, float alpha)
      -> Tensor". Without it, each parameter is a tensor, and there is one
      result;
    - fake: takes the arguments, with {shape =, dtype =} for tensors, and
      returns {shape =, dtype =} for each result. Extents may be computed with
      + - * // %. Without it, results are like the first tensor;
    - backward: takes the gradients of the results, the arguments and, if it has
      more parameters, the results. It returns the gradient of each tensor
      among the arguments. Without it, an argument that requires a gradient
      raises GradientError.

    The operation works under torch.compile without a graph break, and passes
    torch.library.opcheck.
    """
    if not isinstance(script, Module):
        script = default().load(script)
    try:
        return Op(name, script, schema)
    except RuntimeError as e:
        if isinstance(e, Error):
            raise
        raise make_error("the operation %s cannot be registered: %s"
                         % (name, e)) from None
