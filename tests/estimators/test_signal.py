"""The exact signal: by hand, by every sequence of rollouts, and what holds of every estimator."""

import itertools
import math

import pytest
import torch
from reward_batches import OVER_BATCH

from mcgrpo.estimators import ESTIMATORS, Estimator, estimate, quantile, signal
from mcgrpo.estimators.keep import keep_max_variance
from mcgrpo.estimators.statistics import mad, mean, std

ALONE = [name for name in ESTIMATORS if name not in OVER_BATCH]
RATES = torch.linspace(0.0, 1.0, 11, dtype=torch.float64)
BINARY = torch.stack([1 - RATES, RATES], dim=1)
THREE = [[0.5, 0.2, 0.3], [0.1, 0.0, 0.9], [0.0, 1.0, 0.0], [0.9, 0.05, 0.05]]


def slope(estimator, size, **options):
    """F'(p) at `RATES`, for rewards of 0 and 2."""
    direction = signal(estimator, size, [0.0, 2.0], BINARY, **options).direction
    return direction[:, 1] - direction[:, 0]


def close(found, expected):
    torch.testing.assert_close(found, torch.as_tensor(expected, dtype=torch.float64).expand_as(found))
    return True


class TestByHand:
    def test_grpo_of_two_climbs_the_success_rate_itself(self):
        """Advantages are 0, or -1 and 1 over a standard deviation of sqrt(2)."""
        expected = 1 / (math.sqrt(2) + 1e-4)
        assert close(slope("mean-std", 2), expected)
        assert close(signal("mean-std", 2, [0.0, 2.0], BINARY).objective, RATES * expected)

    @pytest.mark.parametrize("size", [2, 3, 4, 8, 16])
    def test_rloo_climbs_the_expected_reward_and_the_mean_a_share_of_it(self, size):
        assert close(slope("rloo", size), 2.0)
        assert close(slope("mean", size), 2.0 * (size - 1) / size)

    def test_the_median_of_three_counts_easy_and_hard_prompts_double(self):
        """Only 0, 0, 2 and 0, 2, 2 have advantages: 2 for the success, -2 for the failure."""
        assert close(slope("median", 2), 3 * (RATES**2 + (1 - RATES) ** 2))
        found = signal("median", 2, [0.0, 2.0], BINARY).objective
        assert close(found, 3 * (RATES - RATES**2 + 2 * RATES**3 / 3))

    @pytest.mark.parametrize(
        ("options", "factor"),
        [({}, 2000.0), ({"max_advantage": 5.0}, 5.0), ({"mad_zero": "unit"}, 2.0), ({"mad_zero": "skip"}, 0.0),
         ({"mad_zero": "std"}, 2 / (2 / math.sqrt(3) + 1e-3)), ({"epsilon": 0.5}, 4.0)],
    )  # fmt: skip
    def test_mc_grpo_of_two_is_the_median_times_what_its_options_say(self, options, factor):
        """The MAD of three rollouts of two levels is 0."""
        assert close(slope("median-mad", 2, **options), 1.5 * factor * (RATES**2 + (1 - RATES) ** 2))

    @pytest.mark.parametrize("rho", [0.0, 1.0, 5.0])
    def test_gain_noise_and_ratios_of_the_mean_of_two(self, rho):
        """0, 1 has advantages of -1/2 and 1/2, so that the update is (e_1 - e_0) / 4, and the others have none."""
        rate = 0.3
        spread, rest = rate * (1 - rate), 1 - rate
        found = signal("mean", 2, [0.0, 1.0], [[rest, rate]], rho=rho)
        assert close(found.gain, [spread**2])
        noise = spread / 4 - spread**2 / 2 + rho * spread / 4
        assert close(found.noise, [noise])
        assert found.per_step == pytest.approx(spread**2 / math.sqrt(noise))
        assert found.per_rollout == found.per_row == pytest.approx(spread**4 / noise / 2)
        best = (2 * spread * (rest**3 + rate**3) - 2 * spread**2 + rho * spread) / 2
        assert found.of_best == pytest.approx((spread**4 / noise) / (4 * spread**4 / best))


def by_sequences(estimator, size, drawn, levels, chances, **options):
    """E[S_l], E[|level part|^2] and E[sum A^2] from every sequence of rollouts, one after the other."""
    places = torch.tensor(list(itertools.product(range(len(levels)), repeat=drawn)))
    advantages, keep, _ = estimate(torch.tensor(levels, dtype=torch.float64)[places], estimator, size, **options)
    used = advantages * keep
    likely = torch.tensor(chances, dtype=torch.float64)
    weight = likely[places].prod(dim=1)
    is_level = torch.nn.functional.one_hot(places, len(levels)).double()
    update = (used.unsqueeze(2) * (is_level - likely)).sum(dim=1) / size
    mean_update = weight @ update
    noise = weight @ (update**2).sum(dim=1) - (mean_update**2).sum()
    sums = weight @ (used.unsqueeze(2) * is_level).sum(dim=1)
    return sums, noise, weight @ (used**2).sum(dim=1) / size**2


def agrees(estimator, size, levels, chances, **options):
    """Whether the enumeration of counts gives what all sequences give."""
    found = signal(estimator, size, levels, [chances], rho=3.0, **options)
    sums, noise, rows = by_sequences(estimator, size, found.drawn, levels, chances, **options)
    torch.testing.assert_close(found.direction[0] * size * found.probabilities[0], sums)
    torch.testing.assert_close(found.noise[0], noise + 3.0 * rows)
    return True


class TestAgainstEverySequence:
    @pytest.mark.parametrize("name", ALONE)
    @pytest.mark.parametrize(
        ("size", "levels", "chances"),
        [
            (2, [0.0, 1.5, 2.0], [0.5, 0.2, 0.3]),
            (3, [2.0, 0.0, 1.5], [0.3, 0.5, 0.2]),
            (4, [0.0, 1.5, 2.0], [0.5, 0.2, 0.3]),
            (8, [0.0, 2.0], [0.7, 0.3]),
        ],
    )
    def test_every_estimator_of_one_group(self, name, size, levels, chances):
        options = {"extra_rollouts": 1 if size == 8 else 3} if name == "pods" else {}
        assert agrees(name, size, levels, chances, **options)

    @pytest.mark.parametrize("extra", [1, 2, 3, 5])
    @pytest.mark.parametrize("level", [0.4, 0.5])
    def test_several_rows_dropped_of_tied_levels(self, register, extra, level):
        register("own", quantile(level, scale=mad, extra_rollouts=extra, epsilon=0.1))
        assert agrees("own", 2, [0.0, 1.0, 2.0, 4.0], [0.4, 0.2, 0.3, 0.1])

    @pytest.mark.parametrize("options", [{"centre_of_kept": True}, {"keep": keep_max_variance}])
    def test_other_rules_for_kept_rows(self, register, options):
        register("own", Estimator(mean, std, 2, 1e-4, **options))
        assert agrees("own", 2, [0.0, 1.0, 2.0], [0.4, 0.3, 0.3])


class TestLaws:
    @pytest.mark.parametrize("name", ALONE)
    def test_a_prompt_has_the_same_signal_alone_and_among_others(self, name):
        together = signal(name, 4, [0.0, 1.5, 2.0], THREE)
        for index, chances in enumerate(THREE):
            alone = signal(name, 4, [0.0, 1.5, 2.0], [chances])
            some = together[index : index + 1]
            torch.testing.assert_close(some.direction, alone.direction)
            torch.testing.assert_close(some.objective, alone.objective)
            assert some.per_rollout == pytest.approx(alone.per_rollout, abs=1e-15)
            assert some.of_best == pytest.approx(alone.of_best, abs=1e-12)

    def test_the_objective_is_the_integral_of_the_slope(self):
        rates = torch.linspace(0, 1, 2001, dtype=torch.float64)
        found = signal("median-mad", 8, [0.0, 2.0], torch.stack([1 - rates, rates], dim=1), mad_zero="std")
        slopes = found.direction[:, 1] - found.direction[:, 0]
        torch.testing.assert_close(found.objective[-1], torch.trapezoid(slopes, rates), rtol=1e-6, atol=0.0)


def keep_first(rewards, centre, num_generations):
    return (torch.arange(rewards.size(1)) < num_generations).expand_as(rewards)


class TestRefusals:
    @pytest.mark.parametrize("name", OVER_BATCH)
    @pytest.mark.parametrize("size", [2, 8])
    def test_estimators_that_look_beyond_one_group(self, name, size):
        with pytest.raises(ValueError, match=f"estimator '{name.replace('+', '.')}' looks beyond"):
            signal(name, size, [0.0, 1.0], BINARY)

    @pytest.mark.parametrize(
        "own", [Estimator(mean, extra_rollouts=1, keep=keep_first), Estimator(lambda rewards: rewards[:, :1])]
    )
    def test_a_keep_rule_or_a_centre_with_an_order_of_its_own(self, register, own):
        register("own", own)
        with pytest.raises(ValueError, match="'own' depends on the order"):
            signal("own", 3, [0.0, 1.0, 2.0], THREE)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("no-such", 2, [0.0, 1.0], [[0.5, 0.5]]), "unknown estimator 'no-such'"),
            (("mean", 1, [0.0, 1.0], [[0.5, 0.5]]), "num_generations"),
            (("mean", 2, [0.0, 0.0], [[0.5, 0.5]]), "levels"),
            (("mean", 2, [0.0, math.inf], [[0.5, 0.5]]), "levels"),
            (("mean", 2, [0.0, 1.0], [[0.2, 0.3, 0.5]]), r"\(prompts, 2\)"),
            (("mean", 2, [0.0, 1.0], [[0.5, 0.5], [0.5, 0.4]]), "probabilities of prompt 1"),
            (("mean", 2, [0.0, 1.0], [[-0.5, 1.5]]), "probabilities of prompt 0"),
            (("mean", 16, list(map(float, range(12))), [[1 / 12] * 12]), "use fewer levels"),
        ],
    )
    def test_arguments_that_are_none(self, arguments, words):
        with pytest.raises(ValueError, match=words):
            signal(*arguments)

    @pytest.mark.parametrize(
        ("options", "words"),
        [({"mad_zero": "none"}, "mad_zero"), ({"rho": -1.0}, "rho"), ({"epsilon": 0.0}, "Set epsilon")],
    )
    def test_options_that_are_none(self, options, words):
        with pytest.raises(ValueError, match=words):
            signal("median-mad", 2, [0.0, 1.0], BINARY, **options)
        with pytest.raises(TypeError, match="lengths"):
            signal("mean", 2, [0.0, 1.0], BINARY, lengths=3)
