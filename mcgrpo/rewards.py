"""The rewards of training and the class of the tasks that they judge, under their public names."""

from mcgrpo.grade.rewards import REWARDS, format_reward, is_accurate, judge, reward_functions, reward_of, text_of
from mcgrpo.grade.task import Task

__all__ = ["REWARDS", "Task", "format_reward", "is_accurate", "judge", "reward_functions", "reward_of", "text_of"]
