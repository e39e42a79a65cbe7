/** An exception with the name of TensorFlow's. */
export function failure(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}
