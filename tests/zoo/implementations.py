"""Makes the case implementations: functions of one interface, of which TensorFlow runs one by the device.

Run with TensorFlow 2.21: python implementations.py FOLDER
"""

from dataset_models import case, function, np, tf

VECTOR = ([None], tf.float32)


def implementation(interface, device, f):
    attributes = {"api_implements": interface, **({"api_preferred_device": device} if device else {})}
    return tf.function(f, input_signature=[tf.TensorSpec(*VECTOR)], autograph=False, experimental_attributes=attributes)


def registered(*functions):
    """Calls the first of them; the others are in the graph, as TensorFlow Probability and Keras leave them."""
    for other in functions[1:]:
        other.get_concrete_function().add_to_graph(tf.compat.v1.get_default_graph())
    return functions[0]


SCALED = [implementation("scaled", None, lambda x: x * 2.0), implementation("scaled", "GPU", lambda x: x * 3.0), implementation("scaled", "CPU", lambda x: x * 5.0)]
SHIFTED = [implementation("shifted", "CPU", lambda x: x + 1.0), implementation("shifted", "GPU", lambda x: x + 2.0)]
ALONE = [implementation("alone", None, lambda x: x - 1.0), implementation("alone", "GPU", lambda x: x - 2.0)]


class Interfaces(tf.Module):
    @function(VECTOR)
    def scaled(self, x):
        return registered(*SCALED)(x)

    @function(VECTOR)
    def shifted(self, x):
        return registered(*SHIFTED)(x)

    @function(VECTOR)
    def alone(self, x):
        return registered(*ALONE)(x)

    @function(VECTOR)
    def repeated(self, x):
        return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, registered(*SCALED)(x)), [0, x])[1]


if __name__ == "__main__":
    x = np.array([1, 2, 3], np.float32)
    case("implementations", "functions of one interface, of which TensorFlow runs one by the device", Interfaces(), [(name, x) for name in ("scaled", "shifted", "alone", "repeated")])
