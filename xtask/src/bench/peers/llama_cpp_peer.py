"""One timed greedy generation by llama.cpp, as JSON on standard output.

    python llama_cpp_peer.py GGUF TOKENS THREADS < IDS.json

Measures what mlx_lm_peer.py measures. llama.cpp is driven by its own functions and the token is the largest logit, taken with
numpy: the sampling chain of the Python package would cost more than it should.
"""
import json, sys, time
import llama_cpp
import numpy

path, tokens, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ids = json.load(sys.stdin)
llama = llama_cpp.Llama(path, n_ctx=len(ids) + tokens + 8, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False)


def generate(prompt, count):
    llama.reset()
    llama._ctx.kv_cache_clear()
    feed = prompt
    for _ in range(count):
        llama.eval(feed)
        logits = llama_cpp.llama_get_logits_ith(llama.ctx, -1)
        token = int(numpy.ctypeslib.as_array(logits, (llama.n_vocab(),)).argmax())
        yield token
        feed = [token]


for _ in generate(ids[:4], 2):
    pass
out, first = [], None
start = time.perf_counter()
for token in generate(ids, tokens):
    last = time.perf_counter()
    first = first or last
    out.append(token)
print(json.dumps({"tokens": out, "prompt_tokens": len(ids), "prefill_tps": len(ids) / (first - start),
                  "decode_tps": (len(out) - 1) / (last - first),
                  "version": f"llama.cpp through llama-cpp-python {llama_cpp.__version__}"}))
