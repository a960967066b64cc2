"""The mini study's world: word problems made in code, two small tokenizers, and models warm-started on them."""
