"""The same fine-tuning in Keras, to compare with: prints the accuracy on the digits that were not trained on."""

import gzip
import pathlib

import keras
import numpy as np
import tensorflow as tf

BATCH, EPOCHS, N_TRAIN = 32, 60, 150
folder = pathlib.Path(__file__).parent


def read_idx(path):
    data = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(data, ">u4", data[3], 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def digits(which):
    """The images of some digits, and the numbers of these among them."""
    images = read_idx(folder.parent / "digits/images.idx3.gz").astype(np.float32)[..., None] / 16
    labels = read_idx(folder.parent / "digits/labels.idx1.gz").astype(np.int32)
    chosen = np.isin(labels, list(which))
    return images[chosen], labels[chosen] - which[0]


def main():
    images, labels = digits(range(5, 10))
    accuracies = []
    for seed in range(9):
        keras.utils.set_random_seed(seed)
        loaded = tf.saved_model.load(str(folder / "model"))
        tuned = [v for v in loaded.trainable_variables if "/first/" not in v.name]
        head = keras.layers.Dense(5)
        head.build([None, 128])
        tuned += [weight.value for weight in head.weights]
        optimizer = tf.compat.v1.train.AdamOptimizer(2e-3)

        @tf.function(reduce_retracing=True)
        def step(x, y):
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, head(loaded.features(x)))
                loss = tf.reduce_mean(losses)
            optimizer.apply_gradients(zip(tape.gradient(loss, tuned), tuned))

        data = tf.data.Dataset.from_tensor_slices((images[:N_TRAIN], labels[:N_TRAIN]))
        for x, y in data.shuffle(N_TRAIN, seed=seed).batch(BATCH).repeat(EPOCHS):
            step(x, y)
        read = head(loaded.features(images[N_TRAIN:])).numpy().argmax(-1)
        accuracies.append(float((read == labels[N_TRAIN:]).mean()))
    print("accuracy", *(f"{accuracy:.4f}" for accuracy in accuracies))


if __name__ == "__main__":
    main()
