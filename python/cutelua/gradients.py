# SPDX-License-Identifier: MIT
"""Gradients of the operations cutelua.ops.NAME for torch's autograd."""
import torch
from torch.autograd.function import once_differentiable

from ._core import GradientError
from . import ops

_ADVICE = ": write torch.no_grad(), or pass the tensor's detach()"


def _flat(x):
    """Returns the rows of all batches of a matrix as one matrix."""
    return x.reshape(-1, x.shape[-1])


def _list(results):
    return list(results) if isinstance(results, tuple) else [results]


class Rule:
    """How an operation is differentiated.

    names: the operation's arguments. inputs: names of the arguments and
    options that have gradients. options: further options that may be given.
    constants: indices of results without gradients.
    """

    names, inputs, options, constants = (), (), (), ()

    def forward(self, f, x, options):
        """Calls the operation f. x: tensors by name. Returns the list of
        results for the caller, and the tensors by name that `backward` needs.
        """
        results = _list(f(*(x.get(n) for n in self.names), **options))
        return results, dict(x, result=results[0])

    def backward(self, grads, x, options, wanted):
        """Returns gradients by name. grads: gradients of the results, None for
        a result without one. x: the tensors that `forward` kept. wanted: names
        of the inputs that need a gradient."""
        raise NotImplementedError


class Gemm(Rule):
    """D = alpha A B^T + beta C."""

    names, inputs = ("A", "B", "C"), ("A", "B", "C")
    options = ("alpha", "beta", "dtype", "tf32", "deterministic",
               "batch_invariant")

    def backward(self, grads, x, options, wanted):
        g, a, b, c = grads[0], x["A"], x["B"], x.get("C")
        beta = options.get("beta", 1)
        keep = {k: options[k] for k in ("alpha", "tf32") if k in options}
        out = {}
        if "C" in wanted and beta != 0:
            out["C"] = (g if beta == 1 else g * beta).sum_to_size(c.shape)
        if a.dtype == b.dtype:
            g = g.to(a.dtype)
        if "A" in wanted:
            d = ops.gemm(g, b.mT, dtype=a.dtype, **keep)
            out["A"] = d.sum_to_size(a.shape)
        if "B" in wanted:
            if b.dim() == 2 and a.dim() > 2:
                g, a = _flat(g), _flat(a.expand(*g.shape[:-2], *a.shape[-2:]))
            d = ops.gemm(g.mT, a.mT, dtype=b.dtype, **keep)
            out["B"] = d.sum_to_size(b.shape)
        return out


class Softmax(Rule):
    names, inputs, options = ("X",), ("X",), ("dtype",)

    def backward(self, grads, x, options, wanted):
        return {"X": ops.softmax_backward(grads[0], x["result"],
                                          dtype=x["X"].dtype)}


class Norm(Rule):
    """rmsnorm and layernorm. statistics: what the backward needs."""

    options = ("eps", "save", "dtype")

    def __init__(self, name, names, statistics):
        self.names, self.statistics = names, statistics
        self.inputs = names + ("residual",)
        self.back = name + "_backward"

    def forward(self, f, x, options):
        arguments = [x.get(n) for n in self.names]
        if x.get("residual") is not None:
            options = dict(options, residual=x["residual"])
        results = _list(f(*arguments, **dict(options, save=True)))
        n = len(self.statistics)
        kept = dict(x, **dict(zip(self.statistics, results[-n:])))
        if x.get("residual") is not None:
            kept["X"], kept["first"] = results[1], x["X"]
        if not options.get("save"):
            results = results[:-n]
        return results, kept

    def backward(self, grads, x, options, wanted):
        first, residual = x.get("first", x["X"]), x.get("residual")
        dy = grads[0]
        dh = grads[1] if residual is not None else None
        if dy is None:
            out = [dh]
        else:
            more = {} if dh is None else {"residual": dh}
            if x.get("B") is not None:
                more["bias"] = True
            out = _list(getattr(ops, self.back)(
                dy, x["X"], *(x[n] for n in self.statistics), x.get("W"),
                **more))
        d = dict(zip(("X", "W", "B"), out))
        if residual is not None and "residual" in wanted:
            d["residual"] = d["X"].to(residual.dtype)
        d["X"] = d["X"].to(first.dtype)
        return d


class CrossEntropy(Rule):
    names, inputs, options = ("X", "T"), ("X",), ("ignore",)
    constants = (1,)

    def forward(self, f, x, options):
        results = _list(f(x["X"], x["T"], **options))
        return results, dict(x, lse=results[1])

    def backward(self, grads, x, options, wanted):
        return {"X": ops.cross_entropy_backward(grads[0], x["X"], x["T"],
                                                x["lse"], **options)}


class Embedding(Rule):
    names, inputs = ("I", "W"), ("W",)

    def backward(self, grads, x, options, wanted):
        return {"W": ops.embedding_backward(grads[0], x["I"],
                                            x["W"].shape[0])}


class Rope(Rule):
    names, inputs = ("X", "Cos", "Sin"), ("X",)
    options = ("positions", "interleaved", "inverse", "dtype")

    def backward(self, grads, x, options, wanted):
        back = dict(options, inverse=not options.get("inverse"),
                    dtype=x["X"].dtype)
        return {"X": ops.rope(grads[0], x["Cos"], x["Sin"], **back)}


class Attention(Rule):
    names, inputs = ("Q", "K", "V"), ("Q", "K", "V", "sinks", "bias",
                                      "alibi_slopes")
    options = ("scale", "causal", "window", "softcap", "score_mod", "mask_mod",
               "cu_q", "cu_k", "tune")
    constants = (1,)
    extra = ("sinks", "bias", "alibi_slopes")

    def _options(self, x, options):
        more = {n: x[n] for n in self.extra if x.get(n) is not None}
        return dict(options, **more)

    def forward(self, f, x, options):
        results = _list(f(x["Q"], x["K"], x["V"], **self._options(x, options)))
        return results, dict(x, O=results[0], LSE=results[1])

    def backward(self, grads, x, options, wanted):
        options = self._options(x, {k: v for k, v in options.items()
                                    if k != "tune"})
        more = [n for n in self.extra if n in wanted]
        if more:
            options["gradients"] = more
        out = ops.attention_backward(grads[0], x["Q"], x["K"], x["V"], x["O"],
                                     x["LSE"], **options)
        return dict(zip(["Q", "K", "V"] + more, out))


RULES = {
    "gemm": Gemm(), "softmax": Softmax(), "cross_entropy": CrossEntropy(),
    "rmsnorm": Norm("rmsnorm", ("X", "W"), ("Rstd",)),
    "layernorm": Norm("layernorm", ("X", "W", "B"), ("Mean", "Rstd")),
    "embedding": Embedding(), "rope": Rope(), "attention": Attention()}


class _Recorded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rule, operation, x, options, names, *tensors):
        ctx.set_materialize_grads(False)
        results, kept = rule.forward(operation, x, options)
        kept = {k: v for k, v in kept.items() if v is not None}
        ctx.rule, ctx.options, ctx.names = rule, options, names
        ctx.kept = tuple(kept)
        ctx.save_for_backward(*kept.values())
        ctx.mark_non_differentiable(*(results[i] for i in rule.constants))
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads):
        grads = [g if g is None else g.contiguous() for g in grads]
        needed = ctx.needs_input_grad[5:]
        wanted = [n for n, yes in zip(ctx.names, needed) if yes]
        out = {}
        if wanted and any(g is not None for g in grads):
            x = dict(zip(ctx.kept, ctx.saved_tensors))
            out = ctx.rule.backward(grads, x, ctx.options, wanted)
        return (None,) * 5 + tuple(out.get(n) if n in wanted else None
                                   for n in ctx.names)


def _requires(x):
    return isinstance(x, torch.Tensor) and x.requires_grad


def call(operation, args, options):
    """Calls an operation, an argument of which requires a gradient."""
    name = "cutelua.ops." + operation.name
    rule = RULES.get(operation.name)
    if rule is None:
        raise GradientError("%s has no backward, but an argument requires a "
                            "gradient%s" % (name, _ADVICE))
    options = {k: v for k, v in options.items() if v is not None}
    if args and type(args[-1]) is dict:
        options, args = dict(args[-1], **options), args[:-1]
    if len(args) > len(rule.names):
        raise GradientError("%s has the arguments %s; %d were given" % (
            name, ", ".join(rule.names), len(args)))
    x = dict(zip(rule.names, args))
    for k in rule.inputs:
        if k not in rule.names and k in options:
            x[k] = options.pop(k)
    for k in options:
        if k not in rule.options:
            raise GradientError("%s has no backward with the option %s, but an "
                                "argument requires a gradient%s"
                                % (name, k, _ADVICE))
    for k, v in list(x.items()) + list(options.items()):
        if _requires(v) and k not in rule.inputs:
            raise GradientError("%s has no gradient of %s, which requires one%s"
                                % (name, k, _ADVICE))
    names = tuple(k for k in x if _requires(x[k]))
    if not names:
        raise GradientError("%s has no gradient of a tensor in a list, which "
                            "requires one%s" % (name, _ADVICE))
    results = _Recorded.apply(rule, operation, x, options, names,
                              *(x[k] for k in names))
    return results[0] if len(results) == 1 else results
