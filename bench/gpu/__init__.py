"""What a GPU makes of this package: versions, `mcgrpo doctor`, laws of bits and rounding, the cost of a step."""
