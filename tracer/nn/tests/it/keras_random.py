"""Prints what Keras' layers draw by seeds.

Run as `python keras_random.py > keras_random.txt`. Lines are those of keras_numbers.txt.
"""

from keras_recorder import L, gradients, numbers, show

x = numbers(2, 3, 4)
layers = {
    "dropout": L.Dropout(0.4, seed=3), "spatial_dropout": L.SpatialDropout1D(0.4, seed=5),
    "gaussian_noise": L.GaussianNoise(0.5, seed=3), "gaussian_dropout": L.GaussianDropout(0.3, seed=-7),
    "alpha_dropout": L.AlphaDropout(0.4, seed=3),
}
for name, layer in layers.items():
    gradients(f"random {name}", lambda x: layer(x, training=True), x, [])
    show(f"random {name} again", layer(x, training=True))
    show(f"random {name} state", layer.seed_generator.state.numpy())
layer = L.Dropout(0.4, seed=2**40 + 5)
show("random large seed", layer(x, training=True))
