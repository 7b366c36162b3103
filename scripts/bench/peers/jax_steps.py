"""Training steps of a halfstep model in JAX, compiled whole, weights kept in float32.

The state is donated: updates are in place.
"""

import functools
import math
import os

os.environ["JAX_PLATFORMS"] = "cpu"

import network

ACTIVATIONS = ("relu", "tanh", "sigmoid", "gelu")


def layer_function(layer, shape, random):
    """(parameters, function(parameters, inputs, key), output shape without the batch)."""
    import jax
    import jax.numpy as jnp

    fields, kind = layer.fields, layer.type
    parameters = {}

    def glorot(sizes, fan_in, fan_out):
        limit = math.sqrt(6 / (fan_in + fan_out))
        return random.uniform(-limit, limit, sizes).astype("float32")

    if kind == "dense":
        parameters["kernel"] = glorot((shape[-1], fields["units"]), shape[-1], fields["units"])
        parameters["bias"] = jnp.zeros(fields["units"])
        out = (*shape[:-1], fields["units"])

        def run(p, inputs, key):
            return inputs[0] @ p["kernel"] + p["bias"]

    elif kind == "conv2d":
        size, strides = network.pair(fields["kernel_size"]), network.pair(fields.get("strides"))
        area = size[0] * size[1]
        filters = fields["filters"]
        parameters["kernel"] = glorot((*size, shape[-1], filters), area * shape[-1], area * filters)
        if fields.get("use_bias", True):
            parameters["bias"] = jnp.zeros(filters)
        padding = fields.get("padding", "valid").upper()
        extents = [
            -(-n // s) if padding == "SAME" else (n - k) // s + 1
            for n, k, s in zip(shape, size, strides)
        ]
        out = (*extents, filters)

        def run(p, inputs, key):
            y = jax.lax.conv_general_dilated(
                inputs[0], p["kernel"], strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            return y + p["bias"] if "bias" in p else y

    elif kind == "batch_normalization":
        parameters = {"gamma": jnp.ones(shape[-1]), "beta": jnp.zeros(shape[-1])}
        out = shape

        def run(p, inputs, key):
            x = inputs[0].astype(jnp.float32)
            axes = tuple(range(x.ndim - 1))
            mean, variance = x.mean(axes), x.var(axes)
            y = (x - mean) * jax.lax.rsqrt(variance + 1e-3) * p["gamma"].astype(jnp.float32)
            return (y + p["beta"].astype(jnp.float32)).astype(inputs[0].dtype)

    elif kind == "max_pooling2d":
        size = network.pair(fields.get("pool_size"), 2)
        strides = network.pair(fields.get("strides"), list(size))
        out = (*[(n - k) // s + 1 for n, k, s in zip(shape, size, strides)], shape[-1])

        def run(p, inputs, key):
            return jax.lax.reduce_window(
                inputs[0], -jnp.inf, jax.lax.max, (1, *size, 1), (1, *strides, 1), "VALID"
            )

    elif kind == "global_average_pooling2d":
        out = (shape[-1],)

        def run(p, inputs, key):
            return inputs[0].mean((1, 2))

    elif kind == "dropout":
        out, keep = shape, 1 - fields["rate"]

        def run(p, inputs, key):
            x = inputs[0]
            return jnp.where(jax.random.bernoulli(key, keep, x.shape), x / keep, 0).astype(x.dtype)

    elif kind == "flatten":
        out = (math.prod(shape),)

        def run(p, inputs, key):
            return inputs[0].reshape(inputs[0].shape[0], -1)

    elif kind == "add":
        out = shape

        def run(p, inputs, key):
            return inputs[0] + inputs[1]

    elif kind in ACTIVATIONS:
        out = shape

        def run(p, inputs, key):
            return getattr(jax.nn, kind)(inputs[0])

    else:
        raise ValueError(f"the script of JAX has no layer {kind}")

    activation = fields.get("activation")
    if activation is None:
        return parameters, run, out
    return parameters, lambda p, i, key: getattr(jax.nn, activation)(run(p, i, key)), out


def updated(fields, w, g, slots):
    """One variable's new value and slots, by Keras's formulas."""
    import jax.numpy as jnp

    rate = fields.get("learning_rate", 1e-3)
    if fields["type"] == "rmsprop":
        v = 0.9 * slots[0] + 0.1 * g * g
        return w - rate * g / jnp.sqrt(v + 1e-7), (v,)
    if fields["type"] == "adam":
        m = 0.9 * slots[0] + 0.1 * g
        v = 0.999 * slots[1] + 0.001 * g * g
        return w - rate * m / (jnp.sqrt(v) + 1e-7), (m, v)
    momentum = fields.get("momentum", 0)
    m = momentum * slots[0] - rate * g
    return w + (momentum * m - rate * g if fields.get("nesterov") else m), (m,)


def main():
    task = network.read_task()
    # The thread count of XLA's CPU client is that of the processors it may run on.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: task.threads])
    import jax
    import jax.numpy as jnp
    import numpy as np

    random = np.random.default_rng(1)
    weights, functions, shapes = {}, {}, {"x": tuple(task.input)}
    for layer in task.layers:
        made = layer_function(layer, shapes[layer.inputs[0]], random)
        weights[layer.name], functions[layer.name], shapes[layer.name] = made
    x = jnp.asarray(random.random([task.batch, *task.input], np.float32))
    labels = jnp.asarray(random.integers(0, task.classes, [task.batch], np.int32))
    slots_each = 2 if task.optimizer["type"] == "adam" else 1

    def loss(weights, x, labels, key, dtype):
        weights = jax.tree.map(lambda w: w.astype(dtype), weights)
        values = {"x": x.astype(dtype)}
        for i, layer in enumerate(task.layers):
            inputs = [values[name] for name in layer.inputs]
            one = jax.random.fold_in(key, i)
            values[layer.name] = functions[layer.name](weights[layer.name], inputs, one)
        scores = jax.nn.log_softmax(values[task.layers[-1].name].astype(jnp.float32))
        return -jnp.take_along_axis(scores, labels[:, None], 1).mean()

    def maker(precision):
        dtype = jnp.dtype(precision)

        @functools.partial(jax.jit, donate_argnums=0)
        def train(state, x, labels, ordinal):
            weights, slots = state
            key = jax.random.fold_in(jax.random.key(1), ordinal)
            value, gradients = jax.value_and_grad(loss)(weights, x, labels, key, dtype)
            w, tree = jax.tree.flatten(weights)
            new = [
                updated(task.optimizer, *one)
                for one in zip(w, jax.tree.leaves(gradients), slots, strict=True)
            ]
            return (jax.tree.unflatten(tree, [n[0] for n in new]), [n[1] for n in new]), value

        def make():
            own = jax.tree.map(lambda w: jnp.array(w, copy=True), weights)
            leaves = jax.tree.leaves(own)
            state = [(own, [tuple(jnp.zeros_like(w) for _ in range(slots_each)) for w in leaves])]
            ordinal = [0]

            def step():
                state[0], value = train(state[0], x, labels, ordinal[0])
                ordinal[0] += 1
                value.block_until_ready()

            return step

        return make

    modes = {f"jax jit {p}": {"jit": maker(p)} for p in task.precisions}
    network.serve({"JAX": jax.__version__}, modes)


if __name__ == "__main__":
    network.run(main)
