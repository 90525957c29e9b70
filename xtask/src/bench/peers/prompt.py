"""Prints a prompt of exactly N tokens as JSON: {"text": ..., "ids": [...]}.

    python prompt.py GGUF N

The text is cut so that encoding it again gives the same ids, so that text and ids say the same to every program.
"""
import json, sys
import mlx.core as mx
import smollm2_reference as reference

TEXT = """The harbour wakes before the town does. Long before the first bus climbs the hill, the boats come in one by one, low in the
water, with gulls behind them like torn paper. Men in yellow coats throw ropes to the quay, and somebody always catches them, because
somebody has always stood there. The fish are sorted by size and by kind, laid on ice, and counted twice. Then the lorries arrive, and
the noise of their engines fills the street until the windows hum. By eight o'clock the quay is washed and empty again. A visitor who
slept late would think that nothing ever happens here, that the sea and the stone simply lie beside each other, as they have for a
thousand years. The old pilot, who keeps the light and writes down the weather every morning, knows better. """.replace("\n", " ")

path, count = sys.argv[1], int(sys.argv[2])
tokenizer = reference.tokenizer(mx.load(path, return_metadata=True)[1])
paragraph = tokenizer.encode(TEXT).ids
ids = tokenizer.encode(TEXT * (2 + count // len(paragraph))).ids
for start in range(len(paragraph)):
    cut = ids[start:start + count]
    text = tokenizer.decode(cut)
    if tokenizer.encode(text).ids == cut:
        print(json.dumps({"text": text, "ids": cut}))
        break
else:
    sys.exit(f"no cut of the text encodes to {count} tokens")
