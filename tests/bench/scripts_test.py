#!/usr/bin/env python3
"""The pure functions of the benchmark scripts: ratios, targets, the state of the processor, the page."""

import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/bench"), str(ROOT / "scripts/bench/peers")]

import jax_steps
import keras_steps
import machine
import network
import page
import programs
import ranks
import samples
import targets


def sample(milliseconds, amx=(5000.0, 5000.0), mean=None, taken=0.0):
    """A turn on a processor with AMX whose float32 peak is a twentieth of it."""
    peak = {"amx_bf16": list(amx), "float32": [a / 20 for a in amx], "copy": [25.0, 25.0]}
    seconds = milliseconds * 1e-3
    return {
        "seconds": seconds,
        "mean": seconds if mean is None else mean * 1e-3,
        "steps": 10,
        "wall": 1.0,
        "peak": peak,
        "taken": taken,
        "stolen": 0.0,
    }


QUIET, SLOW = (5000.0, 5000.0), (2000.0, 2000.0)


def a_run(isa="amx", capped=None):
    """A small run in the form that cpu.py writes."""
    profile = {
        "peak": {"amx_bf16": [4000.0, 6000.0], "float32": [250.0, 250.0], "copy": [20.0, 30.0]},
        "total_ms": 2.0,
        "ops": [
            {"name": "a", "type": "PackedMatMul", "layer": "dense", "phase": "forward",
             "kernel": "packed/amx", "ms": 1.5, "share": 0.75, "achieved_tflops": 2.5,
             "achieved_gbs": 5.0},
            {"name": "b", "type": "FusedUpdate", "layer": "dense", "phase": "update",
             "kernel": "vector/update", "ms": 0.5, "share": 0.25, "achieved_tflops": None,
             "achieved_gbs": 50.0},
        ],
    }  # fmt: skip
    modes = {
        "float32": {"samples": [sample(100), sample(90)], "planned_arena_bytes": 200},
        "mixed_bfloat16": {"samples": [sample(9), sample(10)], "planned_arena_bytes": 100},
        "mixed_float16": {"samples": [sample(30)], "planned_arena_bytes": 100},
        "torch compile bfloat16": {"samples": [sample(27) | {"processors": 1.9}]},
    }
    busy = {"quiet": [sample(10)], "busy": [sample(10, mean=22)], "processes": 2}
    gemm = {"product": "1024,4096,4096 fwd", "own_ms": 15.0, "own_pack_ms": 20.0, "onednn_f32_ms": 150.0,
            "onednn_bf16_ms": 40.0, "own_gflops": 2250.0, "peak_gflops": 4500.0}  # fmt: skip
    everything = [s for mode in modes.values() for s in mode["samples"]]
    return {
        "date": "2026-01-31",
        "isa": isa,
        "native_isa": "amx",
        "capped": capped,
        "threads": 2,
        "machine": {"model": "A processor", "processors": 2, "governor": None, "load_average": 0.5},
        "versions": {"PyTorch": "9.9"},
        "workloads": {
            "guide_4096 8192": {
                "config": "guide_4096",
                "batch": 8192,
                "flops": 2.25e10,
                "state": machine.state(everything),
                "modes": modes,
                "notes": {"torch compile bfloat16": "autocast"},
                "profiles": {"mixed_bfloat16": profile},
            }
        },
        "busy": {"guide_4096 8192, mixed_bfloat16": busy},
        "extras": {"updates": {"ResourceApplyAdam": 0.6}, "gemm": [gemm]},
        "state": machine.state(everything),
        "seconds": 60.0,
    }


def line(lines, figure):
    return next(one for one in lines if figure in one["figure"])


class Ratios(unittest.TestCase):
    def test_best_turns_with_like_peaks_make_the_ratio(self):
        found = samples.speedup([sample(100), sample(90)], [sample(11), sample(10)])
        self.assertAlmostEqual(found["ratio"], 9)
        self.assertEqual(found["rounds"], "best")

    def test_a_turn_in_the_slow_state_is_held_against_one_in_the_slow_state(self):
        # The slow mode never met the fast state: 200 / 10 would be too much.
        slow = [sample(200, SLOW)]
        fast = [sample(10, QUIET), sample(25, SLOW)]
        found = samples.speedup(slow, fast)
        self.assertAlmostEqual(found["ratio"], 8)
        self.assertEqual(found["rounds"], "like peaks")

    def test_a_ratio_without_like_peaks_is_marked(self):
        found = samples.speedup([sample(200, SLOW)], [sample(10, QUIET)])
        self.assertAlmostEqual(found["ratio"], 20)
        self.assertEqual(found["rounds"], "unlike peaks")

    def test_a_peak_that_fell_during_a_turn_counts_as_slow(self):
        found = samples.speedup([sample(200, (5000.0, 2000.0))], [sample(10), sample(25, SLOW)])
        self.assertAlmostEqual(found["ratio"], 8)

    def test_without_any_peak_the_best_turns_count(self):
        bare = [sample(90) | {"peak": {}}, sample(100) | {"peak": {}}]
        self.assertAlmostEqual(samples.speedup(bare, [sample(30) | {"peak": {}}])["ratio"], 3)
        self.assertIsNone(samples.peak_share(bare, 1e9, "amx_bf16"))

    def test_a_mode_that_was_not_measured_has_no_ratio(self):
        self.assertIsNone(samples.speedup([], [sample(1)]))
        self.assertIsNone(samples.speedup([sample(1)], None))

    def test_the_share_of_the_peak_is_the_median_of_turns_whose_peak_held_still(self):
        # 10 GFLOP in 4 ms are 2.5 TFLOP/s.
        some = [
            sample(4, (5000.0, 5000.0)),
            sample(8, (2500.0, 2500.0)),
            sample(4, (5000.0, 500.0)),
        ]
        self.assertAlmostEqual(samples.peak_share(some, 1e10, "amx_bf16"), 0.5)

    def test_float32_is_held_against_float32_and_float16_too_without_amx(self):
        with_amx = [sample(1)]
        without = [{"peak": {"avx512_bf16": [300.0, 300.0], "float32": [150.0, 150.0]}}]
        self.assertEqual(samples.unit_of("float32", with_amx), "float32")
        self.assertEqual(samples.unit_of("mixed_float16", with_amx), "amx_bf16")
        self.assertEqual(samples.unit_of("mixed_float16", without), "float32")
        self.assertEqual(samples.unit_of("mixed_bfloat16", without), "avx512_bf16")

    def test_turns_of_which_others_took_a_tenth_count_as_disturbed(self):
        some = [sample(1), sample(1, taken=0.3), sample(1) | {"stolen": 0.2}, sample(1, taken=0.05)]
        self.assertEqual(samples.undisturbed(some), 2)

    def test_two_busy_processes_on_two_processors_double_the_fair_time(self):
        quiet = [sample(10), sample(12)]
        shared = [sample(1, mean=26), sample(1, mean=22), sample(1, mean=60)]
        self.assertAlmostEqual(samples.fair_share(quiet, shared, 2, 2), 1.3)


class State(unittest.TestCase):
    def test_a_quiet_processor_is_called_quiet(self):
        self.assertEqual(machine.state([sample(1), sample(2)])["verdict"], "quiet")

    def test_time_taken_by_others_and_a_rate_that_varied_are_named(self):
        words = machine.state([sample(1, taken=0.2), sample(1, (2600.0, 1000.0))])["verdict"]
        self.assertIn("busy: 10 % of processor time was taken by others", words)
        self.assertIn("the AMX rate varied between 1.00 and 5.00 TFLOP/s", words)

    def test_a_meter_that_knows_no_unit_leaves_only_the_copy(self):
        reading = {"isa": "baseline", "copy": 10.0, "running": None}
        self.assertEqual(machine.beside(reading, reading), {"copy": [10.0, 10.0]})


class Targets(unittest.TestCase):
    def test_each_line_tells_target_measurement_and_whether_it_is_met(self):
        lines = targets.fill(a_run())
        ratio = line(lines, "B = 8192: bfloat16 over float32")
        self.assertEqual(
            (ratio["target"], round(ratio["measured"], 6), ratio["met"]), (10, 10, True)
        )
        self.assertFalse(line(lines, "B = 8192: float16 over float32")["met"])
        self.assertAlmostEqual(line(lines, "B = 8192: bfloat16 over PyTorch's")["measured"], 3)
        # 22.5 GFLOP in 9 and 10 ms beside 5 TFLOP/s: 0.5 and 0.45.
        self.assertAlmostEqual(line(lines, "share of the register peak")["measured"], 0.475)
        self.assertIsNone(line(lines, "B = 128: bfloat16 over float32")["met"])
        busy = line(lines, "two busy processes")
        self.assertEqual((round(busy["measured"], 6), busy["met"]), (1.1, True))
        worst = line(lines, "the worst")
        self.assertEqual(worst["why"], "guide_4096 8192, mixed_float16")

    def test_targets_follow_the_processor(self):
        lines = targets.fill(a_run(isa="avx512_bf16"))
        self.assertEqual(line(lines, "B = 8192: bfloat16 over float32")["target"], 1.9)
        lines = targets.fill(a_run(isa="avx2"))
        self.assertEqual(line(lines, "B = 8192: bfloat16 over float32")["target"], 1)
        self.assertFalse(any("PyTorch" in one["figure"] for one in lines))

    def test_a_capped_run_has_no_targets_of_the_processor(self):
        lines = targets.fill(a_run(isa="avx512_bf16", capped="avx512_bf16"))
        self.assertEqual(line(lines, "B = 8192: bfloat16 over float32")["target"], 1)

    def test_a_figure_counts_as_it_is_printed(self):
        table = targets.Table()
        table.add("a", 4, 3.996)
        table.add("b", 4, 3.994)
        table.add("c", 1.3, 1.304, at_most=True)
        self.assertEqual([one["met"] for one in table.lines], [True, False, True])

    def test_the_text_has_a_line_for_each_figure(self):
        lines = targets.fill(a_run())
        text = targets.text(lines).splitlines()
        self.assertEqual(len(text), len(lines) + 1)
        self.assertRegex(text[1], r"bfloat16 over float32 +10 +10.00 +yes$")


class Ranks(unittest.TestCase):
    LINK = {"latency": 1e-6, "seconds_per_byte": 1e-9}
    # 64 MB of gradients in 16 buckets.
    BYTES = (64e6, 4e6, *LINK.values())

    def test_one_rank_computes_and_sends_nothing(self):
        step = ranks.predict(1, 0.5, *self.BYTES)
        self.assertEqual(step, {"compute": 0.5, "sums": 0.0, "exposed": 0.0, "step": 0.5})

    def test_sums_hide_behind_the_backward_pass_but_for_the_last_bucket(self):
        step = ranks.predict(2, 1.0, *self.BYTES)
        self.assertAlmostEqual(step["sums"], 64e-3 + 16 * 2e-6)
        self.assertAlmostEqual(step["exposed"], step["sums"] / 16)
        self.assertAlmostEqual(step["step"], 0.5 + step["exposed"])

    def test_many_ranks_are_bound_by_bytes_then_by_messages(self):
        some, many = (ranks.predict(n, 0.1, *self.BYTES) for n in (32, 1024))
        self.assertAlmostEqual(some["exposed"], some["sums"] - 0.1 / 32 * 2 / 3)
        self.assertLess(many["compute"], some["compute"])
        self.assertGreater(many["step"], some["step"])

    def run_of(self, many_seconds):
        turn = {"seconds": 0.1, "hidden_share": None}
        many = {"seconds": many_seconds, "hidden_share": 0.8}
        small = {"bytes": 4, "bare": [1e-6], "sum": [2e-6]}
        large = {"bytes": 1 << 24, "bare": [4e-3], "sum": [8e-3, 5e-3, 4e-3]}
        divided = {"seconds": 0.1, "hidden_share": 0.6}
        modes = {"one": [turn], "ranks": [many], "divided": [divided]}
        steps = {"cnn 8, float32": modes | {"goal": 1.05}}
        return {"ranks": 2, "steps": steps, "sums": [small, large]}

    def test_the_table_holds_steps_hidden_sums_and_their_rate_to_targets(self):
        for seconds, met in ((0.104, True), (0.106, False)):
            lines = ranks.fill(self.run_of(seconds))
            self.assertEqual([line["met"] for line in lines], [met, True, True, False, None, True])
        self.assertAlmostEqual(lines[5]["measured"], 0.8)

    def test_the_link_is_that_of_the_smallest_and_the_largest_sum(self):
        link = ranks.constants(self.run_of(0.1))
        self.assertAlmostEqual(link["latency"], 1e-6)
        self.assertAlmostEqual(link["seconds_per_byte"], 5e-3 / (1 << 24))


class Peers(unittest.TestCase):
    """Scripts of peers, whose frameworks need not be installed."""

    ENCODER = {
        "inputs": {"tokens": [8]},
        "nodes": {
            "embedded": {"type": "embedding", "input_dim": 64, "output_dim": 32, "from": "tokens"},
            "positions": {"type": "position_embedding", "sequence_length": 8, "from": "embedded"},
            "start": {"type": "add", "from": ["embedded", "positions"]},
            "norm": {"type": "layer_normalization", "epsilon": 1e-6, "from": "start"},
            "attention": {
                "type": "multi_head_attention", "num_heads": 4, "key_dim": 16, "from": "norm"
            },
            "pool": {"type": "global_average_pooling1d", "from": "attention"},
            "logits": {"type": "dense", "units": 10, "from": "pool"},
        },
    }

    def network_of(self, model):
        return network.network_of({"model": model, "optimizer": {"type": "adamw"}})

    def peer_of(self, script):
        """A Peer over a script that is the body of `main`."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "steps.py")
            peers = str(ROOT / "scripts/bench/peers")
            lines = ["import sys", f"sys.path.insert(0, {peers!r})", "import network", script]
            path.write_text("\n".join([*lines, "network.run(main)", ""]), encoding="utf-8")
            with mock.patch.dict(programs.SCRIPTS, jax=str(path)), open(
                pathlib.Path(folder, "log"), "w", encoding="utf-8"
            ) as log:
                peer = programs.Peer(sys.executable, "jax", {}, 2, 1, ["float32"], log)
                peer.close()
                peer.process.stdout.close()
            return peer

    def test_keras_gets_the_layers_of_an_encoder(self):
        keras = mock.MagicMock()
        keras.layers.Layer = object  # Positions is a subclass of it
        with mock.patch.object(keras_steps, "positions") as positions:
            keras_steps.model_of(keras, self.network_of(self.ENCODER))
        positions.assert_called_once_with(keras, 8)
        keras.layers.Embedding.assert_called_once_with(64, 32)
        keras.layers.LayerNormalization.assert_called_once_with(epsilon=1e-6)
        keras.layers.MultiHeadAttention.assert_called_once_with(4, 16)
        keras.layers.Dense.assert_called_once_with(10)
        normalized = keras.layers.LayerNormalization()()
        keras.layers.MultiHeadAttention().assert_called_once_with(
            normalized, normalized, use_causal_mask=False
        )
        keras.layers.Activation.assert_not_called()

    def test_each_script_names_the_layer_that_it_lacks(self):
        other = network.Layer("one", "maxout", {}, ["x"])
        with self.assertRaisesRegex(ValueError, "script of Keras has no layer maxout"):
            keras_steps.layer_of(mock.MagicMock(), other)
        modules = {"jax": mock.MagicMock(), "jax.numpy": mock.MagicMock()}
        with mock.patch.dict(sys.modules, modules):
            with self.assertRaisesRegex(ValueError, "script of JAX has no layer embedding"):
                layer = self.network_of(self.ENCODER).layers[0]
                jax_steps.layer_function(layer, (8,), None)

    def test_a_script_that_fails_says_why(self):
        peer = self.peer_of(
            "def main():\n    raise ValueError('the script of JAX has no layer lstm\\nbut others')"
        )
        self.assertEqual(peer.notes, {"jax": "not measured: the script of JAX has no layer lstm"})
        self.assertEqual(peer.modes, [])
        peer = self.peer_of("import os\ndef main():\n    os._exit(3)")
        self.assertEqual(peer.notes, {"jax": "not measured: the script ended"})


class Page(unittest.TestCase):
    def setUp(self):
        run = a_run()
        run["table"] = targets.fill(run)
        self.run_ = page.compact(run)

    def test_a_section_has_the_processor_its_state_targets_steps_and_ops(self):
        text = page.page({"amx": self.run_}, {})
        self.assertIn("## AMX\n", text)
        self.assertIn(
            "- 2026-01-31, A processor, 2 processors, 2 threads, governor not readable", text
        )
        self.assertIn("- State of the processor: quiet.", text)
        self.assertIn("| guide 4096, B = 8192: bfloat16 over float32 | 10 | 10.00 | yes |", text)
        self.assertIn("| mixed_bfloat16 | 9.00 | 10.0 | 5.00 to 5.00 (AMX) | 48 % | - |", text)
        self.assertIn("**guide_4096 8192** (quiet)", text)
        self.assertIn("| torch compile bfloat16 | 27.0 | 27.0 |", text)
        self.assertIn("| 1.90 |", text)
        # 2.5 of 5 TFLOP/s, 5 and 50 of 25 GB/s.
        self.assertIn("| packed/amx | 1.50 | 75 % | 2500 | 50 % | 5.00 | 20 % |", text)
        self.assertIn("| 1024,4096,4096 fwd | 15.0 | 20.0 | 40.0 | 150 | 2250 | 50 % |", text)
        self.assertIn("| vector/update | 0.500 | 25 % | - | - | 50.0 | 200 % |", text)

    def test_sections_stand_in_the_order_of_the_units_and_notes_without_a_run_have_one(self):
        capped = a_run(isa="avx2", capped="avx2")
        capped["table"] = targets.fill(capped)
        short = page.compact(capped)
        self.assertEqual(page.kind(short), "avx2-on-amx")
        text = page.page(
            {"avx2-on-amx": short, "amx": self.run_}, {"avx512_bf16": "Old figures.\n"}
        )
        titles = [row for row in text.splitlines() if row.startswith("## ")]
        wanted = ["## AMX", "## AVX512-BF16", "## AVX2, capped on a processor with AMX"]
        self.assertEqual(titles, wanted)
        self.assertIn("## AVX512-BF16\n\nOld figures.\n", text)

    def test_a_run_is_written_and_read_without_loss(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "amx.json"
            page.write_run(path, self.run_)
            self.assertEqual(json.loads(path.read_text(encoding="utf-8")), self.run_)

    def test_numbers_keep_three_digits_without_an_exponent(self):
        printed = [page.number(x) for x in (12345.6, 123.4, 12.345, 1.2345, 0.12345, None)]
        self.assertEqual(printed, ["12346", "123", "12.3", "1.23", "0.123", "-"])


if __name__ == "__main__":
    unittest.main()
