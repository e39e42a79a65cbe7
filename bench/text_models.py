#!/usr/bin/env python3
"""Models of text, and how long TensorFlow with tensorflow_text takes for them.

    text_models.py make FOLDER             writes the models
    text_models.py time FOLDER [NAME ...]  one line of JSON for each: the least and the median of its calls

Needs tensorflow-cpu, tensorflow-text, keras, keras-hub and sentencepiece. `FOLDER/NAME` is a SavedModel with
one signature; its arguments are in `FOLDER/NAME.json`. The other side is the same arguments in
`ferroflow run FOLDER/NAME --input_exprs ARGUMENTS --threads 1 --repeat N`.

- `text_*`: one op of tensorflow_text on 10 000 sentences, which the model holds; the argument is their number.
- `bert_tiny`, `bert_base`: a classifier from one sentence to probabilities, 64 pieces, weights of random numbers.
- `gpt2_small`: 64 tokens by the loop of KerasHub over a cache, greedy; 4 layers of 256.
- `gpt2_text`: the same from text to text, with byte-pair tokenizer and detokenizer in the model.
"""

import io
import json
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
import tensorflow_text as text

N = 10_000
COMMON = """the of and to in a is that for it as was with be by on not he his but at are this have from or had an they
which one you were her all she there would their we him been has when who will more no if out so said what up its about
into than them can only other new some could time these two may then do first any my now such like our over man me even
most made after also did many before must through back years where much your way well down should because each just those
people how too little state good very make world still own see men work long get here between both life being under never
day same another know while last might us great old year off come since against go came right used take three""".split()
RARE = ["Déjà", "naïve", "Straße", "unwatchable", "jumped", "running", "quickly", "don't", "well-known", "東京", "Ωmega", "e-mail",
        "internationalization", "photosynthesis", "walked", "3.1415", "2026", "U.S.", "(see", "note)", "\"quoted\"", "ﬁne"]


def sentences():
    r = np.random.default_rng(7)
    found = []
    for _ in range(N):
        words = list(r.choice(COMMON, r.integers(6, 20)))
        for _ in range(r.integers(0, 4)):
            words.insert(r.integers(len(words)), r.choice(RARE))
        found.append((" ".join(words).capitalize() + r.choice([".", "!", "?", " ..."])).encode())
    return found


def vocabulary():
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)] + list("0123456789.,!?'\"()-:")
    ends = ["ed", "ing", "ly", "s", "able", "tion", "al", "er", "es", "ness", "un", "inter", "photo", "syn", "the"]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + letters + ["##" + c for c in letters] + COMMON
    words += ends + ["##" + e for e in ends] + ["walk", "run", "quick", "jump", "watch", "nation", "know", "mail", "##well"]
    return list(dict.fromkeys(words))


def sentencepiece_model(kind):
    import sentencepiece
    out = io.BytesIO()
    lines = [s.decode() for s in sentences()[:4000]]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, vocab_size=600, model_type=kind,
                                             hard_vocab_limit=False, num_threads=1, minloglevel=2)
    return out.getvalue()


def total(value):
    """A number that all of the results go into."""
    if isinstance(value, (list, tuple)):
        return tf.add_n([total(v) for v in value])
    flat = value.flat_values if isinstance(value, tf.RaggedTensor) else value
    flat = tf.strings.length(flat) if flat.dtype == tf.string else flat
    return tf.reduce_sum(tf.cast(flat, tf.int64))


def text_ops():
    words = vocabulary()
    ids = tf.range(len(words), dtype=tf.int64)
    table = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(words, ids, tf.string, tf.int64), 1)
    bert = text.BertTokenizer(table, lower_case=True, unknown_token="[UNK]")
    fast = text.FastBertTokenizer(words, lower_case_nfd_strip_accents=True)
    wordpiece = text.FastWordpieceTokenizer(words, unknown_token="[UNK]", no_pretokenization=False)
    unigram = text.SentencepieceTokenizer(sentencepiece_model("unigram"))
    pairs = text.SentencepieceTokenizer(sentencepiece_model("bpe"))
    whitespace, script = text.WhitespaceTokenizer(), text.UnicodeScriptTokenizer()
    return {
        "bert": bert.tokenize,
        "fast_bert": fast.tokenize,
        "fast_wordpiece": wordpiece.tokenize,
        "sentencepiece_unigram": unigram.tokenize,
        "sentencepiece_bpe": pairs.tokenize,
        "whitespace": whitespace.tokenize_with_offsets,
        "unicode_script": script.tokenize_with_offsets,
        "case_fold": text.case_fold_utf8,
        "normalize_nfkc": lambda s: text.normalize_utf8(s, "NFKC"),
        "regex_split": lambda s: text.regex_split(s, r"\s+|[.,!?]"),
        "byte_split": lambda s: text.ByteSplitter().split(s),
        "ngrams": lambda s: text.ngrams(whitespace.tokenize(s), 2, reduction_type=text.Reduction.STRING_JOIN),
    }, [bert, fast, wordpiece, unigram, pairs]


def make_text(folder):
    ops, kept = text_ops()
    for name, op in ops.items():
        module = tf.Module()
        module.kept, module.sentences = kept, tf.Variable(sentences())

        @tf.function(input_signature=[tf.TensorSpec([], tf.int32, name="n")])
        def count(n, op=op, module=module):
            return {"total": total(op(module.sentences[:n]))}

        tf.saved_model.save(module, f"{folder}/text_{name}", signatures=count)
        write(folder, f"text_{name}", {"n": N})


def write(folder, name, arguments):
    with open(f"{folder}/{name}.json", "w") as file:
        json.dump(arguments, file)


def make_bert(folder):
    import keras
    import keras_hub as kh
    keras.utils.set_random_seed(3)
    for name, layers, heads, width in [("bert_tiny", 2, 2, 128), ("bert_base", 12, 12, 768)]:
        tokenizer = kh.tokenizers.BertTokenizer(vocabulary=vocabulary(), lowercase=True)
        backbone = kh.models.BertBackbone(30_000, layers, heads, width, 4 * width, max_sequence_length=64)
        model = kh.models.BertTextClassifier(backbone, num_classes=3, activation="softmax")
        pack = kh.layers.MultiSegmentPacker(64, tokenizer.cls_token_id, tokenizer.sep_token_id)
        module = tf.Module()
        module.kept = [model, tokenizer, pack]

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
        def classify(sentence, model=model, tokenizer=tokenizer, pack=pack):
            ids, segments = pack((tokenizer(sentence),))
            features = {"token_ids": ids, "segment_ids": segments, "padding_mask": tf.not_equal(ids, tokenizer.pad_token_id)}
            return {"probabilities": model(features, training=False)}

        tf.saved_model.save(module, f"{folder}/{name}", signatures=classify)
        write(folder, name, {"text": ["The unwatchable film jumped quickly over a well known lazy dog, and that was good."]})


def gpt2(vocabulary, steps):
    import keras
    import keras_hub as kh
    keras.utils.set_random_seed(3)
    backbone = kh.models.GPT2Backbone(vocabulary, 4, 4, 256, 1024, max_sequence_length=steps)
    model = kh.models.GPT2CausalLM(backbone)
    model.compile(sampler="greedy")
    return model


def make_gpt2(folder):
    steps, prompt = 72, 8
    module = tf.Module()
    module.kept = model = gpt2(5000, steps)

    @tf.function(input_signature=[tf.TensorSpec([None, steps], tf.int32, name="token_ids"), tf.TensorSpec([None, steps], tf.bool, name="padding_mask")])
    def generate(token_ids, padding_mask):
        return model.generate_step({"token_ids": token_ids, "padding_mask": padding_mask}, stop_token_ids=None)

    tf.saved_model.save(module, f"{folder}/gpt2_small", signatures=generate)
    ids = [[17 * i % 5000 + 1 if i < prompt else 0 for i in range(steps)]]
    write(folder, "gpt2_small", {"token_ids": ids, "padding_mask": [[i < prompt for i in range(steps)]]})


def make_gpt2_text(folder):
    import keras_hub as kh
    steps = 72
    pieces = ["<|endoftext|>", *map(chr, range(33, 127)), "\u0120", "th", "he", "\u0120t", "\u0120the", "in", "er", "\u0120a", "re"]
    merges = ["t h", "h e", "\u0120 t", "\u0120t he", "i n", "e r", "\u0120 a", "r e"]
    tokenizer = kh.tokenizers.GPT2Tokenizer(vocabulary={piece: i for i, piece in enumerate(pieces)}, merges=merges)
    pack = kh.layers.StartEndPacker(steps, start_value=0, pad_value=0, return_padding_mask=True)
    module = tf.Module()
    module.kept = model = gpt2(len(pieces), steps)
    module.tokenizer = tokenizer

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="prompt")])
    def complete(prompt):
        ids, mask = pack(tokenizer(prompt), add_end_value=False)
        found = model.generate_step({"token_ids": ids, "padding_mask": mask}, stop_token_ids=None)
        return {"ids": found["token_ids"], "text": tokenizer.detokenize(found["token_ids"])}

    tf.saved_model.save(module, f"{folder}/gpt2_text", signatures=complete)
    write(folder, "gpt2_text", {"prompt": ["the rain"]})


def measure(folder, names):
    names = names or sorted(f[:-5] for f in os.listdir(folder) if f.endswith(".json"))
    for name in names:
        loaded = tf.saved_model.load(f"{folder}/{name}")
        call = next(iter(loaded.signatures.values()))
        with open(f"{folder}/{name}.json") as file:
            given = json.load(file)
        types = call.structured_input_signature[1]
        args = {key: tf.constant(value, types[key].dtype) for key, value in given.items()}
        found = {key: value.numpy() for key, value in call(**args).items()}
        times, start = [], time.perf_counter()
        while len(times) < 5 or time.perf_counter() - start < 3:
            before = time.perf_counter()
            for value in call(**args).values():
                value.numpy()
            times.append(time.perf_counter() - before)
        told = {key: value.reshape(-1)[:6].tolist() for key, value in found.items()}
        told = {key: [str(x) for x in values] for key, values in told.items()}
        print(json.dumps({"name": name, "least": min(times), "median": sorted(times)[len(times) // 2], "found": told}), flush=True)


if __name__ == "__main__":
    command, folder, *names = sys.argv[1:]
    if command == "make":
        os.makedirs(folder, exist_ok=True)
        make_text(folder)
        make_bert(folder)
        make_gpt2(folder)
        make_gpt2_text(folder)
    else:
        measure(folder, names)
