"""Small Keras models whose training steps exercise the rewrite, for tf_rewrite_diff.py."""

import tensorflow as tf

keras = tf.keras
layers = keras.layers
CROSS_ENTROPY = "sparse_categorical_crossentropy"


def mlp():
    """The model of TensorFlow's mixed precision guide."""
    return keras.Sequential([
        keras.Input([784]),
        layers.Dense(64, activation="relu"),
        layers.Dense(64, activation="relu"),
        layers.Dense(10),
        layers.Activation("softmax"),
    ])  # fmt: skip


def cnn():
    """Convolutions, batch normalization, pooling, dropout."""
    return keras.Sequential([
        keras.Input([28, 28, 1]),
        layers.Conv2D(16, 3, padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.MaxPooling2D(),
        layers.DepthwiseConv2D(3),
        layers.Conv2D(32, 3, activation="relu"),
        layers.Flatten(),
        layers.Dropout(0.3),
        layers.Dense(10, activation="softmax"),
    ])  # fmt: skip


def residual():
    """Sums of branches and global pooling."""
    image = keras.Input([28, 28, 1])
    x = layers.Conv2D(16, 3, padding="same")(image)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    y = layers.Conv2D(16, 3, padding="same")(x)
    x = layers.ReLU()(layers.add([x, layers.BatchNormalization()(y)]))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(image, layers.Dense(10, activation="softmax")(x))


def attention():
    """A transformer block: softmax between matmuls, layer normalization, GELU."""
    tokens = keras.Input([32], dtype="int32")
    x = layers.Embedding(100, 16)(tokens)
    y = layers.MultiHeadAttention(2, 8)(x, x)
    x = layers.LayerNormalization()(layers.add([x, y]))
    y = layers.Dense(16)(layers.Dense(32, activation="gelu")(x))
    x = layers.LayerNormalization()(layers.add([x, y]))
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(tokens, layers.Dense(10, activation="softmax")(x))


def recurrent():
    """A loop over tensor lists."""
    return keras.Sequential([
        keras.Input([12, 8]),
        layers.LSTM(16, use_cudnn=False),
        layers.Dense(10, activation="softmax"),
    ])  # fmt: skip


MODELS = {"mlp": mlp, "cnn": cnn, "residual": residual, "attention": attention, "lstm": recurrent}
