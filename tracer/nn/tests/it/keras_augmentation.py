"""Prints what Keras' layers make of images at random, by seeds, and of sound.

Run as `python keras_augmentation.py > keras_augmentation.txt`. Lines are those of keras_numbers.txt.
"""

import numpy as np

from keras_recorder import L, numbers, show, trained

images = (numbers(6, 5, 7, 3) + 0.6) / 1.2
bytes_ = np.round(images * 255).astype(np.float32)
unit, sometimes = dict(value_range=(0, 1)), (0.3, 0.8)
layers = {
    "hue": (L.RandomHue, dict(factor=(0.1, 0.9))),
    "saturation": (L.RandomSaturation, dict(factor=(0.2, 0.9))),
    "color_degeneration": (L.RandomColorDegeneration, dict(factor=(0.2, 0.9))),
    "invert": (L.RandomInvert, dict(factor=sometimes)),
    "color_jitter": (L.RandomColorJitter, dict(brightness_factor=(-0.2, 0.3), contrast_factor=(0.3, 0.4), saturation_factor=(0.3, 0.7), hue_factor=(0.1, 0.4))),
    "solarization": (L.Solarization, dict(addition_factor=(0.1, 0.4), threshold_factor=(0.2, 0.8))),
    "posterization": (L.RandomPosterization, dict(factor=(2, 6))),
    "posterization fixed": (L.RandomPosterization, dict(factor=(3, 3))),
    "sharpness": (L.RandomSharpness, dict(factor=(0.1, 0.9))),
    "gaussian_blur": (L.RandomGaussianBlur, dict(factor=sometimes, kernel_size=3, sigma=(0.5, 2.0))),
    "erasing": (L.RandomErasing, dict(factor=sometimes, scale=(0.1, 0.6), fill_value=[0.1, 0.5, 0.9])),
    "erasing noise": (L.RandomErasing, dict(scale=(0.1, 0.6))),
    "brightness": (L.RandomBrightness, dict(factor=(-0.2, 0.3))),
    "contrast": (L.RandomContrast, dict(factor=(0.3, 0.4))),
    "equalization": (L.Equalization, dict()),
    "equalization few": (L.Equalization, dict(bins=9)),
    "auto_contrast": (L.AutoContrast, dict()),
}
unranged = {
    "grayscale": (L.RandomGrayscale, dict(factor=0.5)),
    "mix_up": (L.MixUp, dict(alpha=0.4)),
    "cut_mix": (L.CutMix, dict(factor=(0.5, 0.9))),
    "shear": (L.RandomShear, dict(x_factor=(0.1, 0.4), y_factor=(0.0, 0.3))),
    "perspective": (L.RandomPerspective, dict(factor=sometimes, scale=0.6, fill_value=0.25)),
    "flip horizontal": (L.RandomFlip, dict(mode="horizontal")),
    "flip vertical": (L.RandomFlip, dict(mode="vertical")),
    "flip both": (L.RandomFlip, dict(mode="horizontal_and_vertical")),
    "rotation": (L.RandomRotation, dict(factor=(-0.2, 0.3))),
    "zoom": (L.RandomZoom, dict(height_factor=(-0.2, 0.3), width_factor=(-0.3, 0.1))),
    "translation": (L.RandomTranslation, dict(height_factor=(-0.2, 0.3), width_factor=(-0.3, 0.1))),
}
DETERMINISTIC = (L.AutoContrast, L.Equalization)


def shown(name, kind, options, x):
    seed = {} if kind in DETERMINISTIC else dict(seed=9)
    layer = kind(**options, **seed)
    y = layer(x, training=True)
    show(f"augmented {name}", y)
    show(f"augmented {name} pixel", np.transpose(y, [1, 2, 3, 0])[2, 3], 18)
    if seed:
        show(f"augmented {name} again", layer(x, training=True))


for name, (kind, options) in layers.items():
    shown(name, kind, dict(**options, **unit), images)
    if "fill_value" not in options:
        shown(f"{name} bytes", kind, dict(**options, value_range=(0, 255)), bytes_)
for name, (kind, options) in unranged.items():
    shown(name, kind, options, images)
labels = np.eye(6, 4, dtype=np.float32)
for name in ["mix_up", "cut_mix"]:
    kind, options = unranged[name]
    mixed = kind(**options, seed=9)({"images": images, "labels": labels}, training=True)
    show(f"augmented {name} labels", mixed["labels"], 24)
flat = images.copy()
flat[0, ..., 1] = 0.5
show("augmented auto_contrast flat", L.AutoContrast(value_range=(0, 1))(flat))
flat[..., 1] = 0.5
show("augmented equalization flat", L.Equalization(value_range=(0, 1))(flat, training=True))

sound = numbers(2, 300)
M = L.MelSpectrogram
mel = dict(fft_length=64, sequence_stride=24, sampling_rate=8000, num_mel_bins=12)
for name, layer in {
    "mel": M(**mel), "mel hamming": M(**mel, window="hamming", sequence_length=41, power_to_db=False),
    "mel plain": M(**mel, window=None, mag_exp=1.0, power_to_db=False, min_freq=100.0, max_freq=3000.0),
    "mel decibels": M(**mel, top_db=15.0, ref_power=4.0, min_power=0.01),
}.items():
    show(f"sound {name}", layer(sound), 24)
show("sound mel vector", M(**mel)(sound[0]), 24)
waves = numbers(2, 30, 2)
stft = dict(frame_length=6, frame_step=2)


def cosine(a, period):
    """A window as scipy has it, which is absent here."""
    return a - (1 - a) * np.cos(2 * np.pi * np.arange(6) / period)


hann = cosine(0.5, 5)
for name, options in {
    "log": {}, "magnitude": dict(window=cosine(0.54, 6)), "psd": dict(scaling="spectrum"), "real": dict(scaling=None),
    "imag": dict(window=None, padding="same"), "angle": dict(fft_length=12), "stft": dict(expand_dims=True),
}.items():
    layer = L.STFTSpectrogram(mode=name, **stft, **{"window": hann, **options})
    show(f"sound stft {name}", layer(waves), 24)
    for kernel in layer.weights:
        show(f"sound stft {name} {kernel.name}", kernel, 24)
trained("sound stft trained", L.STFTSpectrogram(mode="magnitude", frame_length=6, window=hann), 2, 20, 2)
