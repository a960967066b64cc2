"""What a person calls: the commands of `mcgrpo` that are no stage of a study."""
