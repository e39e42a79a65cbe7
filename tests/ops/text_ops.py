"""Records the ops of tensorflow_text: random inputs, and what the library gives for them.

Run with TensorFlow 2.21 and tensorflow_text 2.21, and sentencepiece to train models:
python text_ops.py FOLDER [SEED] [ROUNDS] [OP ...]
"""

import base64
import gzip
import io
import json
import os
import random
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf
import tensorflow_text as text
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import op_def_registry

FOLDER = sys.argv[1]
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 2
ONLY = sys.argv[4:]
R = random.Random(SEED)
CASES, SEQUENCES = {}, {}

CHARACTERS = [chr(c) for c in [
    *range(0x20, 0x7F), 9, 10, 0xA0, 0xC5, 0xC9, 0xDF, 0xE9, 0x130, 0x149, 0x1C4, 0x300, 0x301, 0x308, 0x323, 0x327, 0x344,
    0x345, 0x391, 0x3A3, 0x3C2, 0x3B0, 0x410, 0x451, 0x5D0, 0x5BC, 0x627, 0x660, 0x915, 0x93C, 0x958, 0xE01, 0xFB2, 0x1100,
    0x1161, 0x11A8, 0x1E9B, 0x1E9E, 0x1F71, 0x200B, 0x2003, 0x2019, 0x2026, 0x2028, 0x212B, 0x2460, 0x2581, 0x3000, 0x3002,
    0x3042, 0x304B, 0x3099, 0x30AB, 0x4E00, 0x6771, 0xAC00, 0xAC01, 0xFB01, 0xFB2C, 0xFE0F, 0xFEFF, 0xFF21, 0xFF76, 0xFF9E,
    0x1D15E, 0x1D165, 0x1F600, 0x1F468, 0x20000, 0x2F800, 0xE0041]]
WORDS = ("the quick brown fox jumps over a lazy dog hello world again unbelievable jumped jumping don't it's U.S.A. 3.14 :-) ... "
         "?! (yes.) \"quoted.\" one,two [x] naïve École Straße ﬁne 東京 привет ☃ 🎉 e\u0301 ①② x_1 #tag < > # ## ##s").split()
SPACES = [" ", " ", " ", "  ", "\n", "\t", "\u3000", "\u00a0"]


def some_text(length=12):
    kind = R.random()
    if kind < 0.08:
        return b""
    if kind < 0.55:
        return "".join(R.choice(WORDS) + R.choice(SPACES) for _ in range(R.randint(1, length))).encode()
    if kind < 0.85:
        return "".join(R.choice(CHARACTERS) for _ in range(R.randint(1, length))).encode()
    if kind < 0.93:
        whole = "".join(chr(c) for c in (R.choice([R.randrange(1, 0x3000), R.randrange(0xA000, 0xD7FF), R.randrange(0xF900, 0x20000)]) for _ in range(R.randint(1, 6))))
        return whole.encode("utf8", "replace")
    return bytes(R.choice([0x61, 0x20, 0x80, 0xC3, 0xE2, 0x82, 0xED, 0xA0, 0xF0, 0x9F, 0xF4, 0xFF, 0xC0, 0xCC, 0x81]) for _ in range(R.randint(1, length)))


def texts(n=None, length=12):
    return strings([some_text(length) for _ in range(R.randint(1, 5) if n is None else n)])


def strings(values, shape=None):
    values = [v.encode() if isinstance(v, str) else v for v in values]
    return tf.constant(values, tf.string) if values else tf.zeros([0], tf.string)


def splits(n, rows, dtype=tf.int64):
    return tf.constant([0, *sorted(R.randint(0, n) for _ in range(rows - 1)), n], dtype)


def ints(values, dtype=tf.int32):
    return tf.constant(values, dtype, shape=[len(values)])


def floats(*shape, low=-2.0, high=2.0):
    return tf.constant(np.array([R.uniform(low, high) for _ in range(int(np.prod(shape)))], np.float32).reshape(shape))


def attr_value(value):
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(value).decode()}
    return value.name if isinstance(value, tf.DType) else value


def tensor(t):
    if t.dtype in (tf.resource, tf.variant):
        return {"dtype": t.dtype.name, "opaque": True}
    shape = t.shape.as_list()
    if t.dtype == tf.string:
        flat = t.numpy().reshape(-1).tolist() if shape else [t.numpy()]
        return {"dtype": "string", "shape": shape, "values": [base64.b64encode(v).decode() for v in flat]}
    return {"dtype": t.dtype.name, "shape": shape, "b64": base64.b64encode(t.numpy().tobytes()).decode()}


def call(op, inputs, attrs):
    """Runs an op by name; gives all attributes, and results or an error."""
    definition = op_def_registry.get(op)
    attrs = dict(attrs)
    for arg, value in zip(definition.input_arg, inputs):
        if arg.number_attr:
            attrs[arg.number_attr] = len(value)
        if arg.type_attr and value is not None and (not isinstance(value, list) or value):
            attrs[arg.type_attr] = (value[0] if isinstance(value, list) else value).dtype
    for a in definition.attr:
        if a.name not in attrs and a.HasField("default_value"):
            kind = a.default_value.WhichOneof("value")
            value = getattr(a.default_value, kind)
            attrs[a.name] = tf.as_dtype(value) if kind == "type" else value
    flat = [x for value in inputs for x in (value if isinstance(value, list) else [value])]
    counts = [attrs[o.number_attr] if o.number_attr else None for o in definition.output_arg]
    plain = [x for k, v in attrs.items() for x in (k, v.as_datatype_enum if isinstance(v, tf.DType) else v)]
    n = sum(1 if c is None else c for c in counts)
    try:
        found = iter(execute.execute(op.encode(), n, flat, tuple(plain), context.context()))
    except tf.errors.OpError as error:
        return attrs, None, {"class": type(error).__name__, "message": error.message[:120]}
    return attrs, [next(found) if c is None else [next(found) for _ in range(c)] for c in counts], None


def listed(values):
    return [[tensor(t) for t in v] if isinstance(v, list) else tensor(v) for v in values]


def add(op, *inputs, compare="exact", note=None, **attrs):
    if ONLY and op not in ONLY:
        return
    full, outputs, error = call(op, inputs, attrs)
    case = {"id": len(CASES.get(op, [])), "attrs": {k: attr_value(v) for k, v in full.items()}, "inputs": listed(inputs)}
    case.update({"error": error} if error else {"outputs": listed(outputs)})
    case.update({"compare": compare})
    if compare == "close":
        case.update({"rtol": 1e-5, "atol": 1e-6})
    CASES.setdefault(op, []).append(case)


class Sequence:
    """Steps that share resources or variants."""

    def __init__(self, op):
        self.op, self.steps, self.values = op, [], []

    def step(self, op, *inputs, compare="exact", **attrs):
        real = [self.values[i.step][i.output] if isinstance(i, From) else i for i in inputs]
        full, outputs, error = call(op, real, attrs)
        told = [{"from": [i.step, i.output]} if isinstance(i, From) else listed([i])[0] for i in inputs]
        step = {"op": op, "attrs": {k: attr_value(v) for k, v in full.items()}, "inputs": told, "compare": compare}
        step.update({"error": error} if error else {"outputs": listed(outputs)})
        self.steps.append(step)
        self.values.append(outputs)
        return len(self.steps) - 1

    def done(self):
        if ONLY and self.op not in ONLY:
            return
        known = SEQUENCES.setdefault(self.op, [])
        known.append({"id": len(known), "mode": "eager", "steps": self.steps})


class From:
    def __init__(self, step, output=0):
        self.step, self.output = step, output


def wanted(*ops):
    return not ONLY or any(op in ONLY for op in ops)


def normal_forms():
    for form in ("NFC", "NFD", "NFKC", "nfkd"):
        add("NormalizeUTF8", texts(), normalization_form=form)
        add("NormalizeUTF8", tf.reshape(texts(4), [2, 2]), normalization_form=form)
        s = Sequence("FindSourceOffsets")
        words = texts()
        s.step("NormalizeUTF8WithOffsetsMap", words, normalization_form=form)
        lengths = [len(t) for t in s.values[0][0].numpy().tolist()]
        offsets = [o for n in lengths for o in range(-1, n + 2)]
        ends = np.cumsum([0] + [n + 3 for n in lengths])
        s.step("FindSourceOffsets", From(0, 1), ints(offsets, tf.int64), ints(ends, R.choice([tf.int32, tf.int64])))
        s.done()
    add("CaseFoldUTF8", texts())
    add("CaseFoldUTF8", strings([]))
    add("NormalizeUTF8", strings(["a"]), normalization_form="NFE")


def code_points():
    for dtype in (tf.int32, tf.int64):
        codes = [c for _ in range(3) for c in map(ord, some_text().decode("utf8", "replace"))]
        if R.random() < 0.3:
            codes += [-1, 0xD800, 0x110000, 0x378]
        add("WhitespaceTokenizeWithOffsets", ints(codes), splits(len(codes), 3, dtype))
        for keep in (False, True):
            add("UnicodeScriptTokenizeWithOffsets", ints(codes), splits(len(codes), 3, dtype), keep_whitespace=keep)


def splitting():
    from tensorflow_text.core.pybinds import pywrap_whitespace_tokenizer_config_builder as builder
    config = tf.constant(builder.build_whitespace_tokenizer_config())
    add("TFText>WhitespaceTokenizeWithOffsetsV2", texts(), config)
    for delimiter, keep in ((r"(\s+)", ""), (r"(\s+|\p{P})", r"\p{P}"), (r"(\p{Han})", r"\p{Han}"), ("([aeiou])", "[ae]"), ("(^.)", ".*"), (r"\s", r"\s"), (r"(\b.)", "a|q")):
        add("RegexSplitWithOffsets", texts(), tf.constant(delimiter), tf.constant(keep))
    add("TFText>ByteSplitWithOffsets", texts())
    words = [some_text() for _ in range(3)]
    starts, ends, counts = [], [], [0]
    for w in words:
        for _ in range(R.randint(0, 3)):
            a = R.randint(0, len(w))
            starts.append(a)
            ends.append(R.randint(a, len(w)))
        counts.append(len(starts))
    add("TFText>ByteSplitByOffsets", strings(words), ints(starts), ints(ends), ints(counts, tf.int64))
    add("TFText>Utf8Binarize", texts(), word_length=R.randint(1, 6), bits_per_char=R.randint(1, 24), replacement_char=R.choice([0, 63, 65533]))
    parts = texts(R.randint(0, 9))
    n = int(parts.shape[0])
    add("TFText>NgramsStringJoin", parts, [splits(n, R.randint(1, 4))], width=R.randint(1, 3), axis=-1, string_separator=R.choice(["", " ", "—"]))


def sentences():
    add("SentenceFragmentsV2", texts(length=20))
    rows = [[w for w in some_text(20).decode("utf8", "replace").split()] for _ in range(3)]
    rows = [sum((w.partition(".") for w in row), ()) for row in rows]
    rows = [[w for w in row if w] for row in rows]
    words = sum(rows, [])
    zeros = ints([0] * len(words), tf.int64)
    properties = ints([R.choice([0, 0, 0, 0x80, 0x100, 0x180]) for _ in words], tf.int64)
    add("SentenceFragments", ints([len(row) for row in rows], tf.int64), zeros, zeros, strings(words), properties, input_encoding="UTF-8")


def labels():
    def lead_count(t):
        n = at = 0
        while at < len(t):
            at += 1 if t[at] < 0xC0 else 2 if t[at] < 0xE0 else 3 if t[at] < 0xF0 else 4
            n += 1
        return n if at == len(t) else None
    words = [t for t in (some_text() for _ in range(6)) if lead_count(t) is not None][:3]
    counts = [lead_count(t) for t in words]
    total = sum(counts)
    for force in (True, False):
        add("SplitMergeTokenizeWithOffsets", strings(words), ints([R.randint(0, 1) for _ in range(total)]), ints(np.cumsum([0] + counts)), force_split_at_break_character=force)
        add("TokenizerFromLogits", strings(words), floats(len(words), max(counts + [0]) + R.randint(0, 1), 2), tf.constant(force))
    add("SplitMergeTokenizeWithOffsets", strings(["abc"]), ints([1]), ints([0, 1]))
    add("TokenizerFromLogits", strings(["abc"]), floats(1, 3, 3), tf.constant(True))


def numbers():
    for viterbi in (True, False):
        for log in (True, False):
            for ends in (True, False):
                b, t, n = R.randint(1, 3), R.randint(1, 5), R.randint(1, 4)
                k = n + ends
                scores = floats(b, t, n, low=-2.0 if log else 0.05)
                allowed = tf.constant([[R.random() > 0.3 for _ in range(k)] for _ in range(k)])
                weights = floats(k, k, low=-1.0 if log else 0.1)
                lengths = ints([R.randint(0, t) for _ in range(b)], R.choice([tf.int32, tf.int64]))
                none, nothing = tf.zeros([0, 0], tf.bool), tf.zeros([0, 0])
                add("ConstrainedSequence", scores, lengths, R.choice([allowed, none]), R.choice([weights, nothing]), use_viterbi=viterbi, use_log_space=log, use_start_and_end_states=ends, Tsplits=R.choice([tf.int32, tf.int64]))
    for dtype in (tf.int32, tf.float32, tf.float64):
        b, n = R.randint(1, 3), R.randint(1, 6)
        scores = np.array([float(R.choice([R.randint(-4, 4), R.uniform(-4, 4)])) for _ in range(b * n * n)]).reshape(b, n, n)
        if dtype != tf.int32 and R.random() < 0.5:
            scores[R.randrange(b), R.randrange(n), R.randrange(n)] = R.choice([np.inf, np.nan, -np.inf])
        for forest in (True, False):
            add("MaxSpanningTree", ints([R.randint(1, n) for _ in range(b)]), tf.constant(scores.astype(dtype.as_numpy_dtype)), forest=forest, compare="close")
    add("MaxSpanningTree", ints([0]), floats(1, 2, 2), forest=True)
    for alpha in (-1.0, 0.0, 0.5, 1.0):
        for make in (lambda n: ints([R.randint(0, 4) for _ in range(n)]), lambda n: ints([R.randint(0, 4) for _ in range(n)], tf.int64), lambda n: strings([R.choice("abc") for _ in range(n)])):
            n, m, rows, kind = R.randint(0, 9), R.randint(0, 9), R.randint(1, 3), R.choice([tf.int32, tf.int64])
            add("RougeL", make(n), splits(n, rows, kind), make(m), splits(m, rows, kind), tf.constant(alpha), compare="close")
    for dtype in (tf.int64, tf.string, tf.float32):
        n, rows = R.randint(1, 3), R.randint(1, 3)
        sizes = [R.randint(0, 9) for _ in range(n)]
        values = [texts(s) if dtype == tf.string else tf.cast(tf.range(s) * 3, dtype) for s in sizes]
        kind = R.choice([tf.int32, tf.int64])
        ends = [splits(s, rows, kind) for s in sizes]
        if dtype != tf.string or kind == tf.int64:
            add("TFText>RoundRobinTrim", tf.constant(R.randint(0, 9)), values, ends)
            add("TFText>RoundRobinGenerateMasks", tf.constant(R.randint(0, 9)), values, ends)


def tags():
    for strict in (True, False):
        n = R.randint(1, 7)
        cuts = sorted(R.sample(range(60), 2 * n))
        spans = sorted(R.sample(range(60), 2 * R.randint(0, 4)))
        k = len(spans) // 2
        own = [t for t in (ints(cuts[0::2]), ints(cuts[1::2]))]
        row, other = ints([0, n], tf.int64), ints([0, k], tf.int64)
        add("TFText>OffsetsToBoiseTags", *own, ints(spans[0::2]), ints(spans[1::2]), strings([R.choice(["person", "x"]) for _ in range(k)]), row, row, other, other, other, tf.constant(strict))
        kinds = strings([R.choice(["O", "B-a", "I-a", "E-a", "S-b", "", "B", "Ox", "I-b"]) for _ in range(n)])
        add("TFText>BoiseTagsToOffsets", *own, kinds, row, row, row)


VOCABULARY = list(dict.fromkeys(["[PAD]", "[UNK]", "##", "the", "quick", "##s", "jump", "##ed", "##ing", "un", "##believ", "##able", "don", "'", "t", "3", "##14", ".", "14", "!", "##京", "東", "stra", "##ße", "hello", "world", "##ld"]
                                + list("abcdefghijklm") + ["##" + c for c in "abcdeghijklorsuvwxé"]))


def pieces():
    if wanted("WordpieceTokenizeWithOffsets"):
        for _ in range(3):
            s = Sequence("WordpieceTokenizeWithOffsets")
            s.step("HashTableV2", key_dtype=tf.string, value_dtype=tf.int64, shared_name=f"words{R.random()}", compare="spec")
            s.step("LookupTableImportV2", From(0), strings(VOCABULARY), tf.range(len(VOCABULARY), dtype=tf.int64))
            words = strings([w for t in texts(4).numpy() for w in t.split()] + ["jumping", "thes", "unbelievableq"])
            s.step("WordpieceTokenizeWithOffsets", words, From(0), suffix_indicator="##", max_bytes_per_word=R.choice([4, 100]), max_chars_per_token=R.choice([0, 0, 3]), use_unknown_token=R.random() < 0.6,
                   unknown_token="[UNK]", split_unknown_characters=R.random() < 0.5, output_row_partition_type=R.choice(["row_lengths", "row_splits"]))
            s.done()
    if wanted("FastWordpieceTokenizeWithOffsets", "TFText>FastWordpieceDetokenize"):
        for kw in ({}, {"suffix_indicator": "<w>"}, {"max_bytes_per_word": 5}):
            words = [w.replace("##", kw.get("suffix_indicator", "##")) for w in VOCABULARY]
            model = tf.constant(text.FastWordpieceTokenizer(words, unknown_token="[UNK]", no_pretokenization=True, support_detokenization=True, **kw)._model)
            own = strings([w for t in texts(4).numpy() for w in t.split()] + ["jumping", "##", "##s", "unable", "thes<w>"])
            add("FastWordpieceTokenizeWithOffsets", own, model)
            n = R.randint(0, 9)
            add("TFText>FastWordpieceDetokenize", ints([R.randrange(len(words)) for _ in range(n)]), splits(n, 3), model)
    if wanted("PhraseTokenize", "TFText>PhraseDetokenize"):
        for split in (False, True):
            phrases = ["<UNK>", "hello", "hello world", "the quick", "the", "a", "lazy dog", "don", "'t", ".", "jumps over the"]
            model = tf.constant(text.PhraseTokenizer(phrases, unknown_token="<UNK>", support_detokenization=True, split_end_punctuation=split)._model)
            add("PhraseTokenize", strings([" ".join(R.choice(phrases[1:] + ["x", "don't", "dog."]) for _ in range(R.randint(0, 6))) for _ in range(2)] + [some_text()]), model)
            n = R.randint(0, 7)
            add("TFText>PhraseDetokenize", ints([R.randrange(len(phrases)) for _ in range(n)]), splits(n, 2), model)


TRAINED = {}


def trained(kind):
    if kind not in TRAINED:
        import sentencepiece
        lines = ["the quick brown fox jumps over the lazy dog", "hello world and hello again", "東京 の テキスト", "naïve café straße", "aaa aab aba baa"] * 6
        out = io.BytesIO()
        rules = os.path.join(tempfile.gettempdir(), "rules.tsv")
        with open(rules, "w") as f:
            f.write("".join(f"{a}\t{b}\n" for a, b in (("FB01", "66 69"), ("2460", "31"), ("A0", "20"), ("3000", "20"), ("9", "20"), ("65 301", "E9"), ("FF21", "41"), ("200B", ""))))
        more = {"bytes": {"byte_fallback": True, "vocab_size": 340}, "user": {"user_defined_symbols": ["[x]", "lazy dog"]}, "suffix": {"treat_whitespace_as_suffix": True},
                "identity": {"normalization_rule_tsv": "", "normalization_rule_name": "identity", "remove_extra_whitespaces": False, "add_dummy_prefix": False}, "bpe": {"model_type": "bpe"}, "word": {"model_type": "word"}, "char": {"model_type": "char"},
                "bpe_user": {"model_type": "bpe", "user_defined_symbols": ["[x]", "lazy dog"]}, "fold": {"normalization_rule_tsv": "", "normalization_rule_name": "nfkc_cf"}, "unigram": {}}[kind]
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, **{"vocab_size": 70, "hard_vocab_limit": False, "num_threads": 1, "minloglevel": 2, "normalization_rule_tsv": rules, **more})
        TRAINED[kind] = out.getvalue()
    return TRAINED[kind]


def sentencepieces(kinds):
    names = ["SentencepieceTokenizeOp"]
    if not wanted(*names):
        return
    for kind in kinds:
        s = Sequence("SentencepieceTokenizeOp")
        h = From(s.step("SentencepieceOp", model=trained(kind), shared_name=f"model{R.random()}", compare="spec"))
        s.step("SentencepieceVocabSizeOp", h)
        s.step("SentencepieceIdToStringOp", h, ints([0, 1, 2, 3, 9]))
        s.step("SentencepieceStringToIdOp", h, strings(["<unk>", "▁the", "e", "none", "</s>"]))
        for out in (tf.int32, tf.string):
            for n in (0, 1, 3):
                flags = [tf.constant(R.random() < 0.4) for _ in range(3)]
                own = texts(4, 6) if not n else strings([R.choice(WORDS[:14]) for _ in range(2)])
                args = [h, own, tf.constant(n), tf.constant(0.5), *flags]
                i = s.step("SentencepieceTokenizeOp" if n else "SentencepieceTokenizeWithOffsetsOp", *args, out_type=out, Tsplits=R.choice([tf.int32, tf.int64]), return_nbest=n > 0)
                if s.values[i]:
                    s.step("SentencepieceDetokenizeOp", h, From(i, 0), From(i, 1), *flags)
        s.step("SentencepieceDetokenizeOp", h, ints([R.randrange(40) for _ in range(8)]), splits(8, 2), *[tf.constant(False)] * 3)
        s.done()


def fast_sentencepieces():
    if not wanted("TFText>FastSentencepieceTokenize"):
        return
    from tensorflow_text.core.pybinds import pywrap_model_converter as converter
    for kind in ("unigram", "identity"):
        encoder = tf.constant(np.frombuffer(converter.convert_sentencepiece_model(trained(kind)), np.uint8))
        flags = [tf.constant(R.random() < 0.4) for _ in range(3)]
        add("TFText>FastSentencepieceTokenize", encoder, texts(4, 6), tf.constant(0), tf.constant(0.0), *flags)


for _ in range(ROUNDS):
    for make in (normal_forms, code_points, splitting, sentences, labels, numbers, tags, pieces):
        make()
    sentencepieces(R.sample(["unigram", "bpe", "bytes", "user", "suffix", "identity", "word", "char", "bpe_user", ], 2 if ROUNDS < 5 else 4))
fast_sentencepieces()
os.makedirs(FOLDER, exist_ok=True)
for op in sorted({*CASES, *SEQUENCES}):
    name = op.replace(">", "_")
    whole = {"op": op, "tf": tf.__version__, "family": "text", "cases": CASES.get(op, [])}
    if op in SEQUENCES:
        whole["sequences"] = SEQUENCES[op]
    with open(f"{FOLDER}/{name}.json.gz", "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as f:
        f.write(json.dumps(whole, ensure_ascii=False).encode())
