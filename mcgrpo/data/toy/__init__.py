"""The mini study's task: generated word problems, two small tokenizers, and models warm-started on the problems."""
