"""`mcgrpo advise`: its estimates from few samples, its ranking, its output and its errors."""

import csv
import json
import random
import re

import pytest
import torch

from mcgrpo.commands.advise.__main__ import main
from mcgrpo.commands.advise.mixture import fit, grid, mixtures
from mcgrpo.commands.advise.ranking import Costs, candidates, rank
from mcgrpo.commands.advise.samples import Samples, read_samples
from mcgrpo.estimators import signal
from mcgrpo.estimators.enumeration import count_vectors
from mcgrpo.grade.completions import main as grade

RATES = (0.05, 0.3, 0.5, 0.9)


def pairs(rates):
    rates = torch.as_tensor(rates, dtype=torch.float64)
    return torch.stack([1 - rates, rates], dim=1)


def ranked(samples, resamples=50, costs=None, sizes=(2, 4), estimators=("mean-std", "mean", "median-mad"), **options):
    points, shares = mixtures(samples, resamples, 0)
    found, _ = candidates(estimators, sizes, samples.levels, points, costs or Costs(), **options)
    return {(row.estimator, row.num_generations): row for row in rank(found, shares, [None, None])}


class TestFewSamples:
    @pytest.mark.parametrize("size", [4, 8])
    def test_what_is_true_of_prompts_comes_out_of_few_samples_of_many_of_them(self, size):
        """All prompts have a rate of 0.3, so that the counts are binomial; the shares of samples are more extreme."""
        counts = count_vectors(2, size)
        weights = torch.distributions.Binomial(size, torch.tensor(0.3)).log_prob(counts[:, 1].float()).exp().double()
        points = grid(2)
        shares = fit(counts.double(), weights.unsqueeze(0), points)
        truth = signal("mean", 4, [0.0, 1.0], pairs([0.3]))

        def gain(at, of):
            return (of @ signal("mean", 4, [0.0, 1.0], at).gain).item()

        assert gain(points, shares[0]) == pytest.approx(truth.gain.item(), rel=0.03)
        assert gain(pairs(counts[:, 1] / size), weights) < 0.9 * truth.gain.item()

    def test_the_fit_makes_the_counts_no_less_likely_than_the_truth_does(self):
        points, counts = grid(3), count_vectors(3, 6).double()
        index = torch.randint(len(points), (5,), generator=torch.Generator().manual_seed(0))
        truth = torch.zeros(len(points), dtype=torch.float64).index_fill(0, index, 0.2)
        ways = (torch.lgamma(torch.tensor(7.0)) - torch.lgamma(counts + 1).sum(dim=1)).exp()
        likely = torch.special.xlogy(counts.unsqueeze(1), points).sum(dim=2).exp() * ways.unsqueeze(1)
        weights = likely @ truth
        found = fit(counts, weights.unsqueeze(0), points)[0]
        assert found.sum().item() == pytest.approx(1.0) and weights.sum().item() == pytest.approx(1.0)
        assert (weights @ (likely @ found).log()).item() == pytest.approx((weights @ weights.log()).item(), abs=1e-3)

    @pytest.mark.slow
    def test_the_intervals_of_a_ratio_cover_the_truth(self):
        """100 prompts with rates of a Beta distribution, 8 samples each; 95% of the intervals should."""
        rates = torch.distributions.Beta(0.7, 1.2).sample((20_000,)).double()
        pair = {"estimators": ["mean", "median-mad"], "sizes": (4,)}
        truth = ranked(Samples((0.0, 1.0), pairs(rates), exact=True), 1, **pair)
        better, worse = truth
        expected = truth[worse].of_first
        covered, widths = 0, 0.0
        torch.manual_seed(1)
        for _ in range(20):
            own = torch.distributions.Beta(0.7, 1.2).sample((100,))
            right = torch.distributions.Binomial(8, own).sample().double()
            rows = ranked(Samples((0.0, 1.0), torch.stack([8 - right, right], dim=1)), **pair)
            assert next(iter(rows)) == better
            covered += rows[worse].of_first_low <= expected <= rows[worse].of_first_high
            widths += rows[worse].of_first_high - rows[worse].of_first_low
        assert covered >= 17 and widths / 20 < 0.5 * expected

    def test_exact_rates_are_taken_as_they_are(self):
        points, shares = mixtures(Samples((0.0, 1.0), pairs(RATES), exact=True), 5, 0)
        assert points[:, 1].tolist() == sorted(RATES, reverse=True) and (shares[0] == 0.25).all()
        assert torch.allclose(shares.sum(dim=1), torch.ones(6, dtype=torch.float64))


class TestRanking:
    @pytest.mark.parametrize("name", ["mean-std", "median-mad"])
    def test_it_is_the_signal_of_the_prompts(self, name):
        rows = ranked(Samples((0.0, 1.0), pairs(RATES), exact=True))
        assert rows[name, 4].value == pytest.approx(signal(name, 4, [0.0, 1.0], pairs(RATES)).per_rollout)

    def test_seconds_are_of_rollouts_and_of_rows_with_an_advantage(self):
        found = signal("median-mad", 4, [0.0, 1.0], pairs(RATES))
        for costs, seconds in (
            (Costs(2.0, 3.0), 2.0 * 5 + 3.0 * found.active.mean().item()),
            (Costs(2.0, 3.0, all_rows=True), 2.0 * 5 + 3.0 * 4),
        ):
            rows = ranked(Samples((0.0, 1.0), pairs(RATES), exact=True), costs=costs)
            assert rows["median-mad", 4].value == pytest.approx(found.per_step**2 / len(RATES) / seconds)
        assert found.active.mean() < 3

    def test_cheap_rollouts_and_costly_rows_favour_many_rollouts_of_which_few_are_trained_on(self):
        samples = Samples((0.0, 1.0), pairs(RATES), exact=True)
        for costs, first in ((Costs(1.0, 0.0), "mean"), (Costs(0.01, 1.0, all_rows=True), "pods")):
            rows = ranked(samples, costs=costs, sizes=(4,), estimators=["mean", "pods"])
            assert next(iter(rows)) == (first, 4)

    def test_estimators_that_differ_by_a_factor_are_one_row(self):
        rows = ranked(
            Samples((0.0, 1.0), pairs(RATES), exact=True), estimators=["rloo", "mean", "mean-std"], sizes=(4,)
        )
        assert set(rows) == {("rloo = mean", 4), ("mean-std", 4)}

    def test_registered_estimators_without_a_signal_of_their_own_are_named(self):
        found, left_out = candidates(None, [2], (0.0, 1.0), pairs(RATES), Costs())
        assert {line.partition(":")[0] for line in left_out} >= {"batch-std", "james-stein", "opo", "bnpo"}
        assert {"mean-std", "median-mad", "pods"} <= {name for each in found for name in each.names}


def graded(path, prompts=30, samples=8, **changes):
    """Grades as `mcgrpo grade` writes them."""
    draw = random.Random(0)
    rows = []
    for prompt in range(prompts):
        rate = draw.betavariate(0.8, 1.2)
        for sample in range(samples):
            verdict = draw.choice(["correct", "equivalent"]) if draw.random() < rate else "wrong"
            rows.append({"id": f"q{prompt}", "sample": sample, "verdict": verdict, "extracted": "1", "finish": "stop"})
    rows[-1] |= changes
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rates_file(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


FEW = ["--estimators", "mean-std", "median-mad", "--num-generations", "2", "4"]


class TestTheCommand:
    @pytest.mark.slow
    def test_grades_give_a_ranking_a_picture_and_a_table(self, tmp_path, capsys):
        picture, table = tmp_path / "advice.png", tmp_path / "advice.csv"
        main([str(graded(tmp_path / "grades.jsonl")), *FEW, "--picture", str(picture), "--csv", str(table)])
        printed = capsys.readouterr().out
        assert "30 prompts, 8 samples each; rewards 0, 1.5, 2" in printed and "Not included: clipping" in printed
        lines = [re.split(r"  +", line) for line in printed.splitlines() if line.startswith("m")]
        assert len(lines) == 4 and lines[0][4].startswith("1.00")
        with table.open() as file:
            rows = list(csv.DictReader(file))
        assert [row["estimator"] for row in rows] == [line[0] for line in lines]
        assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 20_000

    @pytest.mark.slow
    def test_what_the_grader_writes_is_read(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        answers = [{"id": f"q{n}", "sample": s, "completion": f"<answer>{s % 3}</answer>", "answer": str(n % 2)}
                   for n in range(6) for s in range(8)]  # fmt: skip
        (tmp_path / "completions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
        grade(["--task", "gsm8k", "--input", "completions.jsonl", "--output", "grades.jsonl"])
        capsys.readouterr()
        main(["grades.jsonl", *FEW])
        assert "6 prompts, 8 samples each; rewards 0, 2\nsuccess rate 37.5%" in capsys.readouterr().out
        assert (tmp_path / "advice.png").is_file()

    def test_pass_rates_are_counts_if_their_samples_are_known(self, tmp_path):
        file = rates_file(tmp_path / "rates.csv", "id,pass_rate", "a,0.33", "b,1", "c,0.67")
        assert read_samples(file, None, 3).counts.tolist() == [[2, 1], [0, 3], [1, 2]]
        assert read_samples(file, [0.0, 2.0], 3).levels == (0.0, 2.0)
        exact = read_samples(file, None, None)
        assert exact.exact and "--samples" in exact.note
        file = rates_file(tmp_path / "rates.csv", "pass_rate,samples", "0.5,2", "0.25,8")
        assert read_samples(file, None, None).counts.tolist() == [[1, 1], [6, 2]]

    def test_a_rate_on_a_limit_is_within_it(self, tmp_path, capsys):
        file = rates_file(tmp_path / "rates.csv", "pass_rate", "0.3", "0.3", "0.5")
        outputs = ["--csv", str(tmp_path / "advice.csv"), "--picture", str(tmp_path / "advice.png")]
        main([str(file), *FEW, "--hard", "0.3", *outputs])
        with (tmp_path / "advice.csv").open() as table:
            assert all(row["hard"] for row in csv.DictReader(table))

    def test_where_nothing_can_be_enumerated_the_reason_is_given(self, tmp_path, capsys):
        grades = str(graded(tmp_path / "grades.jsonl"))
        with pytest.raises(SystemExit) as ended:
            main([grades, "--num-generations", "4", "1000", "--picture", str(tmp_path / "a.png")])
        assert "no estimator can be ranked: " in str(ended.value)

    def test_rewards_of_ones_own_replace_those_of_verdicts(self, tmp_path):
        found = read_samples(graded(tmp_path / "grades.jsonl"), [-1.0, 1.0], None)
        assert found.levels == (-1.0, 1.0) and found.counts.size(1) == 2

    def test_a_prompt_whose_answer_does_not_parse_is_left_out(self, tmp_path):
        found = read_samples(graded(tmp_path / "grades.jsonl", gold_parsable=False), None, None)
        assert len(found.counts) == 29 and "1 prompt" in found.note

    def test_greedy_completions_are_left_out(self, tmp_path):
        file = graded(tmp_path / "grades.jsonl", decoding="greedy")
        assert read_samples(file, None, None).counts.sum(dim=1).tolist() == [8] * 29 + [7]

    @pytest.mark.slow
    def test_resamples_of_prompts_that_all_fail_rank_nothing(self, tmp_path):
        """More than a third of them, with ten prompts of which one is sometimes solved."""
        file = rates_file(tmp_path / "rates.csv", "pass_rate", *["0"] * 9, "0.5")
        main([str(file), *FEW, "--picture", str(tmp_path / "a.png"), "--csv", str(tmp_path / "a.csv")])
        with (tmp_path / "a.csv").open() as table:
            rows = list(csv.DictReader(table))
        assert "nan" not in {value for row in rows for value in row.values()}
        assert sum(float(row["first"]) for row in rows) == pytest.approx(1)

    def test_a_file_with_a_byte_order_mark_is_read(self, tmp_path):
        """As Excel writes it."""
        file = rates_file(tmp_path / "rates.csv", "\ufeffpass_rate", "0.4", "0.5")
        main([str(file), *FEW, "--picture", str(tmp_path / "a.png"), "--csv", str(tmp_path / "a.csv")])

    def test_easy_and_hard_prompts_are_empty_where_there_are_none(self, tmp_path, capsys):
        file = rates_file(tmp_path / "rates.csv", "pass_rate", "0.4", "0.5")
        main([str(file), *FEW, "--picture", str(tmp_path / "a.png"), "--csv", str(tmp_path / "a.csv")])
        with (tmp_path / "a.csv").open() as table:
            assert {row["hard"] for row in csv.DictReader(table)} == {""}
        main(
            [str(file), *FEW, "--picture", str(tmp_path / "a.png"), "--csv", str(tmp_path / "a.csv"), "--hard", "0.45"]
        )
        with (tmp_path / "a.csv").open() as table:
            assert "1.0" in {row["hard"] for row in csv.DictReader(table)}


def refusal(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    if isinstance(ended.value.code, str):
        return ended.value.code
    return capsys.readouterr().err.splitlines()[-1]


class TestErrors:
    @pytest.mark.parametrize(
        ("lines", "words"),
        [
            (["rate", "0.5"], "no column pass_rate"),
            (["pass_rate"], "no prompts"),
            (["pass_rate", "0.5", "half"], "rates.csv:3: pass_rate 'half' is not a number"),
            (["pass_rate", "0.5", "nan"], "rates.csv:3: pass_rate nan is not finite"),
            (["pass_rate", "0.5", "1.5"], "rates.csv:3: pass_rate 1.5 is not between 0 and 1"),
            (["pass_rate,samples", "0.5,8", "0.3,8"], "rates.csv:3: pass_rate 0.3 of 8 samples is 2.4 successes"),
            (["pass_rate,samples", "0.5,8", "0.5,"], "rates.csv:3: samples '' is not a number"),
            (["pass_rate,samples", "0.5,8", "1,1"], "rates.csv:3: samples 1 is not a whole number of at least 2"),
            (["pass_rate", "0", "0"], "all pass rates are 0"),
            (["pass_rate", "1", "1"], "all pass rates are 1"),
            (["pass_rate", "0", "1"], "no estimator has a signal"),
        ],
    )
    def test_pass_rates_that_are_none(self, lines, words, tmp_path, capsys):
        file = rates_file(tmp_path / "rates.csv", *lines)
        message = refusal([file, *FEW, "--picture", tmp_path / "a.png"], capsys)
        assert words in message and message.count("\n") == 0 and not (tmp_path / "a.png").exists()

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"verdict": "maybe"}, "grades.jsonl:240"),
            ({"id": "alone"}, "'alone' has one sample"),
            ({"sample": "x"}, "grades.jsonl:240"),
        ],
    )
    def test_grades_that_are_none(self, changes, words, tmp_path, capsys):
        assert words in refusal([graded(tmp_path / "grades.jsonl", **changes), *FEW], capsys)

    def test_completions_that_nobody_graded(self, tmp_path, capsys):
        file = tmp_path / "completions.jsonl"
        file.write_text('{"id": "a", "sample": 0, "completion": "1", "answer": "1"}\n')
        assert "completions.jsonl:1" in refusal([file], capsys)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--rollout-seconds", "1"], "--row-seconds"),
            (["--rollout-seconds", "0", "--row-seconds", "0"], "both 0"),
            (["--rollout-seconds", "-1", "--row-seconds", "0"], "'-1' should be a number, 0 or more"),
            (["--num-generations", "1"], "'1' should be a whole number, 2 or more"),
            (["--estimators", "no-such"], "unknown estimator 'no-such'"),
            (["--estimators", "batch-std"], "'batch-std' looks beyond one group"),
            (["--estimators", "bnpo"], "need binary rewards"),
            (["--hard", "2"], "'2' should be a number between 0 and 1"),
            (["--max-advantage", "0"], "max_advantage"),
            (["--rewards", "1", "1"], "--rewards"),
            (["--samples", "8"], "--samples is for pass rates"),
            (["--picture", "no/such/folder.txt"], ".png"),
        ],
    )
    def test_options_that_are_none(self, arguments, words, tmp_path, capsys):
        assert words in refusal([graded(tmp_path / "grades.jsonl"), *arguments], capsys)

    def test_a_file_that_is_not_there(self, tmp_path, capsys):
        for name in ("none.csv", "none.jsonl"):
            assert name in refusal([tmp_path / name], capsys)
