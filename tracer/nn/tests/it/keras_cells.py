"""Prints what Keras' layers of cells and stateful layers give.

Run as `python keras_cells.py > keras_cells.txt`. Lines are those of keras_numbers.txt.
"""

import numpy as np

from keras_recorder import L, fill, gradients, numbers, show, trained

trained("cells lstm", L.RNN(L.LSTMCell(4), return_sequences=True), 2, 5, 3)
trained("cells gru", L.RNN(L.GRUCell(4), go_backwards=True), 2, 5, 3)
trained("cells stacked lstm", L.RNN(L.StackedRNNCells([L.LSTMCell(4), L.LSTMCell(2)])), 2, 5, 3)
trained("cells stacked gru", L.RNN([L.GRUCell(4), L.GRUCell(2)], return_sequences=True), 2, 5, 3)
x, mask = numbers(2, 5, 3), np.array([[1, 1, 0, 1, 0], [0, 1, 1, 0, 0]], bool)
layer = L.RNN([L.GRUCell(4), L.GRUCell(2)], return_sequences=True)
layer(x)
fill(layer)
gradients("cells masked", lambda x: layer(x, mask=mask), x, layer.trainable_weights)
for name, layer in {"lstm": L.LSTM(4, stateful=True), "gru": L.GRU(4, stateful=True, return_sequences=True)}.items():
    layer(x)
    for w in layer.trainable_weights:
        w.assign(numbers(*w.shape))
    layer.reset_states()
    show(f"stateful {name} first", layer(x))
    show(f"stateful {name} second", layer(x + 0.1, mask=mask))
    for i, state in enumerate(layer.states):
        show(f"stateful {name} state {i}", state.numpy())
