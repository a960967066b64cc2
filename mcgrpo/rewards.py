"""The rewards of training, under their public name."""

from mcgrpo.grade.rewards import REWARDS, format_reward, is_accurate, judge, reward_functions, reward_of, text_of

__all__ = ["REWARDS", "format_reward", "is_accurate", "judge", "reward_functions", "reward_of", "text_of"]
