"""Makes the cases text_pieces and text_sentencepiece: tokenizers of tensorflow_text in models.

Run with TensorFlow 2.21, tensorflow_text 2.21 and sentencepiece: python text_models.py FOLDER
"""

import base64
import io
import json
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import sentencepiece
import tensorflow as tf
import tensorflow_text as text

STRINGS = tf.TensorSpec([None], tf.string)
WORDS = "[PAD] [UNK] [CLS] [SEP] the quick fox jump ##ed ##ing un ##able , . don ' t école ecole stra ##ße".split()


def dense(ragged):
    return ragged.to_tensor(), ragged.row_lengths()


class Pieces(tf.Module):
    def __init__(self):
        ids = tf.range(len(WORDS), dtype=tf.int64)
        self.table = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(WORDS, ids, tf.string, tf.int64), 1)
        self.bert = text.BertTokenizer(self.table, lower_case=True, unknown_token="[UNK]")
        self.fast = text.FastWordpieceTokenizer(WORDS, unknown_token="[UNK]", no_pretokenization=True, support_detokenization=True)
        self.trimmer = text.RoundRobinTrimmer(max_seq_length=6)

    @tf.function(input_signature=[STRINGS, STRINGS])
    def pack(self, a, b):
        segments = self.trimmer.trim([self.bert.tokenize(x).merge_dims(1, -1) for x in (a, b)])
        ids, types = text.combine_segments(segments, start_of_sequence_id=2, end_of_segment_id=3)
        return [*text.pad_model_inputs(ids, 9), text.pad_model_inputs(types, 9)[0]]

    @tf.function(input_signature=[STRINGS])
    def words(self, s):
        ids, starts, ends = self.fast.tokenize_with_offsets(tf.strings.split(text.case_fold_utf8(s)).flat_values)
        return [*dense(ids), starts.to_tensor(), ends.to_tensor(), self.fast.detokenize(tf.cast(ids, tf.int32))]


class Sentencepiece(tf.Module):
    def __init__(self):
        out = io.BytesIO()
        lines = ["the quick fox jumped", "a lazy dog, a quick dog", "naïve café"] * 5
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=out, vocab_size=45, hard_vocab_limit=False, num_threads=1, minloglevel=2, normalization_rule_name="identity")
        self.tokenizer = text.SentencepieceTokenizer(out.getvalue(), add_bos=True)

    @tf.function(input_signature=[STRINGS])
    def round_trip(self, s):
        ids, starts, ends = self.tokenizer.tokenize_with_offsets(s)
        return [*dense(ids), starts.to_tensor(), ends.to_tensor(), self.tokenizer.detokenize(ids), self.tokenizer.vocab_size()]


def told(value):
    if isinstance(value, (list, tuple)):
        return {"list": [told(v) for v in value]}
    flat = value.numpy().reshape(-1).tolist() if value.shape.rank else [value.numpy()]
    if value.dtype == tf.string:
        return {"dtype": "string", "shape": value.shape.as_list(), "values": [base64.b64encode(v).decode() for v in flat]}
    return value


def stored(folder, name, value):
    import numpy as np

    if isinstance(value, dict) and "list" in value:
        return {"list": [stored(folder, f"{name}_{i}", v) for i, v in enumerate(value["list"])]}
    if isinstance(value, dict):
        return value
    np.save(f"{folder}/io/{name}", value.numpy())
    return {"npy": f"io/{name}.npy", "dtype": value.dtype.name, "shape": value.shape.as_list()}


def case(name, source, module, calls):
    folder = f"{sys.argv[1]}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(f"{folder}/io")
    tf.saved_model.save(module, f"{folder}/model")
    loaded = tf.saved_model.load(f"{folder}/model")
    listed = []
    for path, *args in calls:
        args = [tf.constant(a) for a in args]
        key = f"c{len(listed):02}"
        given = [stored(folder, f"{key}_in_{i}", told(a)) for i, a in enumerate(args)]
        expect = stored(folder, key, told(getattr(loaded, path)(*args)))
        listed.append({"kind": "function", "path": path, "args": given, "kwargs": {}, "expect": expect})
    with open(f"{folder}/case.json", "w") as file:
        json.dump({"name": name, "kind": "saved_model", "source": f"text_models.py: {source}", "features": ["strings", "ragged"], "tags": ["serve"], "calls": listed}, file, indent=1)
        file.write("\n")


TEXTS = ["The quick fox jumped, unable.", "", "don't École Straße 東京 \u0130", "jumping quick quick quick quick"]
case("text_pieces", "word pieces by a table and by a model, trimming, packing", Pieces(), [("pack", TEXTS, TEXTS[::-1]), ("words", TEXTS), ("words", ["quick"])])
case("text_sentencepiece", "a SentencePiece model in an attribute, both ways", Sentencepiece(), [("round_trip", ["the quick dog", "", "naïve 東京", "  a  lazy fox"])])
