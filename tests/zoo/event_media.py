"""Makes the case `event_media`: an event file with an image, a sound and an old histogram.

    python event_media.py OUT_DIR

Needs TensorFlow 2.21.
"""

import base64
import json
import os
import sys

import tensorflow as tf
from tensorflow.core.framework import summary_pb2
from tensorflow.core.util import event_pb2

folder = os.path.join(sys.argv[1], "event_media")
os.makedirs(os.path.join(folder, "events"), exist_ok=True)
path = os.path.join(folder, "events", "events.out.tfevents.0001")

png = tf.io.encode_png(tf.constant([[[1, 2, 3], [4, 5, 6]]], tf.uint8)).numpy()
wav = tf.audio.encode_wav(tf.constant([[0.0], [0.5], [-0.5]]), 8000).numpy()
summary = summary_pb2.Summary()
summary.value.add(tag="picture").image.CopyFrom(
    summary_pb2.Summary.Image(height=1, width=2, colorspace=3, encoded_image_string=png))
summary.value.add(tag="sound").audio.CopyFrom(summary_pb2.Summary.Audio(
    sample_rate=8000, num_channels=1, length_frames=3, encoded_audio_string=wav,
    content_type="audio/wav"))
summary.value.add(tag="old").obsolete_old_style_histogram = b"\x08\x01"
events = [
    event_pb2.Event(wall_time=1.5, file_version="brain.Event:2"),
    event_pb2.Event(wall_time=2.5, step=7, summary=summary),
]
with tf.io.TFRecordWriter(path) as writer:
    for event in events:
        writer.write(event.SerializeToString())

values = []
for value in summary.value:
    kind = value.WhichOneof("value")
    record = {
        "tag": value.tag,
        "value": kind,
        "plugin": value.metadata.plugin_data.plugin_name,
        "plugin_content": base64.b64encode(value.metadata.plugin_data.content).decode(),
    }
    if kind == "image":
        image = value.image
        record["image"] = {
            "height": image.height,
            "width": image.width,
            "colorspace": image.colorspace,
            "bytes": len(image.encoded_image_string),
        }
    values.append(record)
case = {
    "name": "event_media",
    "kind": "events",
    "source": "event_media.py: an image, a sound and an old histogram",
    "features": ["events", "image", "audio"],
    "calls": [],
    "file": "events/events.out.tfevents.0001",
    "records": [
        {"wall_time": 1.5, "step": 0, "what": "file_version",
         "bytes": events[0].ByteSize(), "file_version": "brain.Event:2"},
        {"wall_time": 2.5, "step": 7, "what": "summary",
         "bytes": events[1].ByteSize(), "values": values},
    ],
}
with open(os.path.join(folder, "case.json"), "w") as file:
    json.dump(case, file, indent=1)
    file.write("\n")
