"""The page opened and used in a real browser; skipped where there is none (Debian: `chromium`)."""

import re
import shutil

import pytest
from page_study import PageStudy, is_rising

from mcgrpo.report.catalogue import FIGURES

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no chromium is installed")]
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
SECONDS, BYTES = 2, 15_000_000
SCROLLED = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A page whose figures weigh as much as those of a large study."""
    study = PageStudy(tmp_path_factory.mktemp("page"))
    study.draw(side=270)
    return study.made(*FIGURES)


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        # Where tests run as root, as in a container, Chromium has no sandbox.
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, file):
    """Opens the page at a size; afterwards nothing may have been complained of or fetched from elsewhere."""
    complaints, requests, contexts = [], [], []

    def open_page(viewport=DESK, **options):
        context = browser.new_context(viewport=viewport, reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if url != file.as_uri() and not url.startswith(("data:", "blob:"))] == []


def counts_claims(page, text):
    """Wait until the page says so; the page's own policy does not let `wait_for_function` evaluate a text twice."""
    from playwright.sync_api import expect

    expect(page.locator("#claim-count")).to_have_text(text, timeout=120_000)


def visible_claims(page):
    return page.locator("#claim-list > tbody > tr:visible")


class TestOpening:
    def test_it_is_light_and_opens_at_once(self, opened, file):
        size = file.stat().st_size
        assert 6_000_000 < size < BYTES  # more than the mini study's, so that the time is no flattery
        page = opened()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})  # of the processor, whatever else it does
        page.goto(file.as_uri())
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        assert 0 < metrics["TaskDuration"] < SECONDS

    def test_every_figure_can_be_seen(self, opened):
        widths = opened().eval_on_selector_all(
            ".zoom img", "images => Promise.all(images.map(image => image.decode().then(() => image.naturalWidth)))"
        )
        assert widths == [540] * len(FIGURES)

    def test_the_answer_and_the_tally_of_claims_are_on_the_first_screen(self, opened):
        page = opened()
        assert page.inner_text("h1") == "Does the median help at G=2 here?"
        for part in ("h1", ".answer", ".lead", ".tally h2", ".forest tbody tr:nth-child(3)"):
            box = page.locator(part).bounding_box()
            assert box["y"] + box["height"] < DESK["height"], part
        assert page.locator(".forest .dot").count() == page.locator(".forest tbody tr:not(.missing, .place)").count()

    @pytest.mark.parametrize("viewport", [DESK, PHONE, {"width": 320, "height": 640}])
    def test_nothing_but_wide_tables_is_wider_than_the_screen(self, opened, viewport):
        page = opened(viewport)
        page.locator("summary").evaluate_all("all => all.forEach(each => each.click())")
        assert page.evaluate(SCROLLED) <= viewport["width"]

    def test_on_a_phone_no_table_is_wider_than_the_screen_and_every_number_says_what_it_is(self, opened):
        page = opened(PHONE)
        wide = "all => all.filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.ariaLabel)"
        assert page.eval_on_selector_all(".scroll", wide) == []
        label = "cells => cells.map(cell => getComputedStyle(cell, '::before').content)"
        labels = page.eval_on_selector_all("#table-main td:not(:empty)", label)
        assert len(labels) > 20 and {'"Method"', '"Greedy (%)"', '"Gain, sampled"', '"Seeds"'} <= set(labels)
        assert page.eval_on_selector_all(".numbers td:not([data-label])", "cells => cells.length") == 0

    def test_on_a_phone_the_answer_comes_first(self, opened):
        page = opened(PHONE)
        box = page.locator(".lead").bounding_box()
        assert box["y"] + box["height"] < PHONE["height"]

    def test_it_is_dark_where_the_reader_wants_that(self, opened):
        grounds = [
            opened(color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
            for scheme in ("light", "dark")
        ]
        assert grounds == ["rgb(252, 252, 250)", "rgb(21, 24, 27)"]

    def test_every_link_within_it_leads_somewhere(self, opened):
        page = opened()
        targets = page.eval_on_selector_all("a[href^='#']", "links => links.map(link => link.hash)")
        assert len(targets) > 15 and [target for target in targets if not page.locator(target).count()] == []


class TestClaims:
    def test_words_and_verdicts_filter_them(self, opened):
        page = opened()
        every = visible_claims(page).count()
        page.fill("#claim-search", "sign-flip rate")
        found = visible_claims(page)
        assert 0 < found.count() < every
        assert all("sign-flip" in text.lower() for text in found.all_inner_texts())
        assert page.inner_text("#claim-count") == f"{found.count()} of {every} claims"
        page.click("text=Clear")
        counts_claims(page, f"{every} of {every} claims")
        page.select_option("#claim-published", "holds")
        assert set(found.evaluate_all("rows => rows.map(row => row.dataset.published)")) == {"holds"}

    def test_a_number_of_the_first_screen_leads_to_its_claims(self, opened):
        page = opened()
        link = page.locator(".tally a[data-source=published][data-verdict=fails]")
        count = int(link.locator("b").inner_text())
        link.click()
        counts_claims(page, re.compile(rf"{count} of \d+ claims"))
        assert visible_claims(page).count() == count
        assert page.locator("#claims h2").bounding_box()["y"] < DESK["height"]

    def test_a_click_on_a_heading_sorts_them_and_another_turns_them_round(self, opened):
        page = opened()
        heading, rows = page.get_by_role("button", name="By this study"), page.locator("#claim-list > tbody > tr")
        places = "rows => rows.map(row => Number(row.dataset.place))"
        verdicts = "rows => rows.map(row => row.dataset.ours)"
        order = ["holds", "fails", "equivalent", "inconclusive", "not measured", "not judged"]
        assert not is_rising(map(order.index, rows.evaluate_all(verdicts)))
        heading.click()
        assert is_rising(map(order.index, rows.evaluate_all(verdicts)))
        assert page.locator("th[aria-sort=ascending]").inner_text().startswith("By this study")
        heading.click()
        assert is_rising(map(order.index, reversed(rows.evaluate_all(verdicts))))
        page.get_by_role("button", name="Claim", exact=True).click()
        assert is_rising(rows.evaluate_all(places))

    def test_the_comparisons_behind_a_verdict_open(self, opened):
        page = opened()
        details = page.locator("#claim-list details").first
        assert not details.locator("li").first.is_visible()
        details.locator("summary").click()
        assert details.locator("li").count() > 1 and "claimed" in details.locator("li").first.inner_text()


class TestTables:
    def test_cells_and_markdown_can_be_taken_along(self, opened):
        page = opened()
        with page.expect_download() as download:
            page.locator("#table-main").get_by_text("CSV", exact=True).click()
        assert download.value.suggested_filename == "toy-main.csv"
        assert download.value.path().read_text().startswith("setting,method,num_generations,")

    def test_headings_and_rows_say_what_they_are(self, opened):
        page = opened()
        bare = "tables => tables.filter(table => !table.querySelector('thead th[scope=col]')).length"
        assert page.eval_on_selector_all("table", bare) == 0
        assert page.locator("#tables th:not([scope])").count() == 0


class TestFigures:
    def test_a_click_enlarges_one(self, opened):
        page = opened()
        page.locator("#figure-rewards .zoom").click()
        large = page.locator("#large")
        assert large.is_visible() and large.locator("img").get_attribute("alt").startswith("Reward over training.")
        page.keyboard.press("Escape")
        assert not large.is_visible()


class TestCompletions:
    def test_another_run_shows_its_own_completions(self, opened):
        page = opened()
        groups = page.locator("#groups details")
        assert groups.count() == 6 and "2 drawn, 1 trained on" in groups.first.inner_text()
        page.select_option("#run", label="MC-GRPO, G=4 · toy_a, seed 0")
        assert "5 drawn, 4 trained on, 1 flipped (oracle 0.4)" in groups.first.inner_text()
        rows = groups.first.locator("tbody tr")
        assert rows.count() == 5
        assert [rows.nth(place).locator(".mark").all_inner_texts() for place in range(5)] == [
            [], ["pivot"], [], [], ["flipped"],
        ]  # fmt: skip
        assert "+2,000" in rows.nth(2).inner_text() and "−1.5" in rows.nth(0).inner_text()

    def test_without_an_oracle_no_flip_is_counted(self, opened):
        page = opened()
        page.select_option("#run", label="GRPO, G=4, flip-exact-0.25 · toy_a, seed 0")
        assert "4 drawn, 3 trained on, no oracle" in page.locator("#groups details").first.inner_text()
        assert page.locator("#groups .mark.flipped").count() == 0

    def test_one_step_can_be_chosen_and_all_opened(self, opened):
        page = opened()
        groups = page.locator("#groups details")
        page.select_option("#step", "3")
        assert groups.count() == 2 and all("Step 3" in text for text in groups.all_inner_texts())
        assert groups.last.get_attribute("open") is None
        page.click("#unfold")
        assert groups.last.get_attribute("open") is not None and groups.last.locator("table").is_visible()
        assert page.inner_text("#unfold") == "Close all"
