"""What a study will take, before anything starts: trainings, optimizer steps, hours, detectable gains."""
