"""Adds calls with text in many encodings to the recorded calls of ops, with TensorFlow's results.

    python encoding_cases.py
"""

import base64, gzip, json, os
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

NOTE = "text encodings"
TEXTS = {
    "shift_jis": "日本語テキスト ﾊﾝｶｸ", "euc_jp": "日本語テキスト", "iso2022_jp": "日本語 abc テキスト", "iso2022_jp_2": "日本語 한국 中",
    "gbk": "简体中文文本", "gb18030": "简体中文 ḿ 😀", "big5": "繁體中文文字", "big5hkscs": "香港嘅字 Ê̄", "cp949": "한국어 텍스트 뷁",
    "cp1250": "Příliš žluťoučký", "cp1251": "Съешь же ещё", "cp1252": "naïve “café” €", "cp1253": "Ξεσκεπάζω", "cp1254": "ığüşöç İ",
    "cp1255": "עברית", "cp1256": "العربية", "cp1257": "žąsis", "cp1258": "Việt", "iso8859_2": "Łódź", "iso8859_5": "Привет",
    "iso8859_6": "مرحبا", "iso8859_7": "Γειά", "iso8859_8": "שלום", "iso8859_9": "Güneş", "iso8859_15": "œuvre €", "koi8_r": "Привет мир",
    "koi8_u": "Привіт ґ", "cp866": "Привет ░▒▓", "cp437": "Ç ü α ░", "cp850": "Ñandú", "mac_roman": "naïve “café”", "mac_cyrillic": "Привет",
    "tis_620": "ภาษาไทย", "cp037": "EBCDIC 123", "cp500": "EBCDIC {}", "utf_16": "日本 😀", "utf_32": "日本 😀", "utf_16_be": "日本 😀",
}
NAMES = {
    "shift_jis": ["Shift_JIS", "windows-31j"], "euc_jp": ["EUC-JP"], "iso2022_jp": ["ISO-2022-JP"], "iso2022_jp_2": ["iso-2022-jp-2"],
    "gbk": ["GBK", "cp936"], "gb18030": ["gb18030"], "big5": ["Big5"], "big5hkscs": ["Big5-HKSCS"], "cp949": ["windows-949", "KS_C_5601-1987"],
    "mac_roman": ["macintosh"], "mac_cyrillic": ["x-mac-cyrillic"], "tis_620": ["TIS-620"], "cp037": ["IBM037"], "utf_16": ["UTF-16"],
    "utf_32": ["utf-32"], "utf_16_be": ["UTF-16BE"], "koi8_r": ["KOI8-R"], "koi8_u": ["koi8-u"],
}
MALFORMED = [b"\x81", b"a\x81\x20b", b"\xb0\xa1\xff\xa1", b"\x8f\xa2", b"\x1b$B0!\x1b(B", b"\x1b$Bx", b"\x00\x07\x1f\x7f\xa0", b"\x81\x30\x89"]


def tensor(value):
    if value.dtype == object:
        return {"dtype": "string", "shape": list(value.shape), "values": [base64.b64encode(v).decode() for v in value.reshape(-1)]}
    return {"dtype": str(value.dtype), "shape": list(value.shape), "b64": base64.b64encode(value.tobytes()).decode()}


def call(op, texts, **attrs):
    inputs = np.array(texts, object)
    case = {"attrs": attrs, "inputs": [tensor(inputs)], "note": NOTE}
    types = {key: tf.as_dtype(value) if key == "Tsplits" else value for key, value in attrs.items()}
    try:
        found = getattr(tf.raw_ops, op)(input=tf.constant(texts), **types)
    except tf.errors.OpError as error:
        return case | {"error": {"class": type(error).__name__, "message": str(error.message)[-80:]}}
    found = list(found) if isinstance(found, tuple) else [found]
    return case | {"outputs": [tensor(np.asarray(part.numpy())) for part in found], "compare": "exact"}


def cases(op):
    for codec, text in TEXTS.items():
        for name in NAMES.get(codec, [codec.replace("iso8859_", "ISO-8859-").replace("cp125", "windows-125")]):
            written = text.encode(codec, "ignore")
            texts = [written] if name.lower() in ("utf-16", "utf-32") else [written, written[: len(written) - 1], b"", *MALFORMED]
            rest = {"input_encoding": name, "replacement_char": 65533, "replace_control_characters": False}
            for errors in ("replace", "ignore", "strict"):
                given = texts[:1] if errors == "strict" else texts
                attrs = rest | {"errors": errors, "replace_control_characters": errors == "ignore"}
                if op == "UnicodeTranscode":
                    yield call(op, given, output_encoding="UTF-8", **attrs)
                elif errors != "strict" or len(texts) > 1:
                    yield call(op, given, Tsplits="int64", **attrs)
    for name in ("Shift_JIS", "GBK", "EUC-JP", "IBM866", "windows-1253"):
        attrs = {"input_encoding": name, "errors": "strict", "replacement_char": 65533, "replace_control_characters": False}
        attrs |= {"output_encoding": "UTF-16-BE"} if op == "UnicodeTranscode" else {"Tsplits": "int64"}
        yield call(op, [b"a\xff\x20b"], **attrs)
    for name in ("NOPE", "ibm-1047x", "utf-8x"):
        attrs = {"input_encoding": name, "errors": "replace", "replacement_char": 63, "replace_control_characters": False}
        attrs |= {"output_encoding": "UTF-8"} if op == "UnicodeTranscode" else {"Tsplits": "int64"}
        yield call(op, [b"a"], **attrs)


for op in ("UnicodeDecodeWithOffsets", "UnicodeTranscode"):
    path = Path(__file__).parent / f"{op}.json.gz"
    recorded = json.loads(gzip.decompress(path.read_bytes()))
    kept = [case for case in recorded["cases"] if case.get("note") != NOTE]
    start = 1 + max(case["id"] for case in kept)
    added = [{"id": start + n, **case} for n, case in enumerate(cases(op))]
    recorded["cases"] = kept + added
    text = json.dumps(recorded, ensure_ascii=False, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(op, len(added), sum("error" in case for case in added))
