"""Makes sentencepiece.json: a small SentencePiece BPE vocabulary with byte fallback, and texts with the ids that the
sentencepiece library gives them.

    python make_sentencepiece.py TEXT_FILE OUT.json

The committed file was made by sentencepiece 0.2.3 from the repository's LICENSE-APACHE.
"""
import json, random, sys, tempfile
from pathlib import Path

import sentencepiece as spm

source, out = sys.argv[1:]
with tempfile.TemporaryDirectory() as d:
    spm.SentencePieceTrainer.train(
        input=source, model_prefix=f"{d}/m", model_type="bpe", vocab_size=700, byte_fallback=True,
        normalization_rule_name="identity", add_dummy_prefix=True, remove_extra_whitespaces=False,
        split_digits=True, allow_whitespace_only_pieces=True, character_coverage=0.9995, minloglevel=2)
    sp = spm.SentencePieceProcessor(model_file=f"{d}/m.model")

kinds = [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 5 if sp.is_unused(i) else 1
         for i in range(len(sp))]
words = Path(source).read_text().split()
rng = random.Random(1)
texts = ["", "a", " ", "   ", "Hello world", "  two  spaces  ", "\n\n\ttab\n", "čeština 日本語 😀", "don't 12345", "aaaaaaaaaaaa",
         "        deep", "the Licensethe License", "<s> is no token here </s>"]
texts += [" ".join(rng.sample(words, rng.randint(1, 12))) for _ in range(150)]
texts += ["".join(rng.choice("thean rio sdl  ") for _ in range(rng.randint(1, 40))) for _ in range(150)]
rows = [dict(text=t, ids=sp.encode(t), decoded=sp.decode(sp.encode(t))) for t in texts]
Path(out).write_text(json.dumps(dict(
    tokens=[sp.id_to_piece(i) for i in range(len(sp))], scores=[sp.get_score(i) for i in range(len(sp))], kinds=kinds,
    rows=rows), ensure_ascii=False, separators=(",", ":")))
