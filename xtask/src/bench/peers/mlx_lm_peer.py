"""One timed generation by mlx-lm, as JSON on standard output.

    python mlx_lm_peer.py GGUF TOKENS < IDS.json

The weights are loaded and evaluated before the clock starts, and a short generation warms up. Prefill runs up to the first
token of the answer, decode from there to the last: what `oxmlx generate --json` measures.
"""
import json, sys, time
from importlib.metadata import version
import mlx.core as mx
from mlx_lm.generate import generate_step
import smollm2_reference as reference

path, tokens = sys.argv[1], int(sys.argv[2])
ids = json.load(sys.stdin)
model, _ = reference.load(path)
mx.eval(model.parameters())
for _ in generate_step(mx.array(ids[:4]), model, max_tokens=2):
    pass
out, first = [], None
start = time.perf_counter()
for token, _ in generate_step(mx.array(ids), model, max_tokens=tokens):
    last = time.perf_counter()
    first = first or last
    out.append(int(token))
print(json.dumps({"tokens": out, "prompt_tokens": len(ids), "prefill_tps": len(ids) / (first - start),
                  "decode_tps": (len(out) - 1) / (last - first),
                  "version": f"mlx-lm {version('mlx-lm')} on mlx {mx.__version__}"}))
