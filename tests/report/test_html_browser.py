"""The page opened and used in a real browser; skipped where there is none (Debian: `chromium`)."""

import shutil

import pytest
from page_study import PageStudy

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
            "figure img", "images => Promise.all(images.map(image => image.decode().then(() => image.naturalWidth)))"
        )
        assert widths == [540] * len(FIGURES)

    def test_the_answer_and_the_tally_of_claims_are_on_the_first_screen(self, opened):
        page = opened()
        assert page.inner_text("h1") == "Does the median help?"
        for part in ("h1", ".answer", ".lead", "#table-answer tbody tr:first-child", ".tally h2"):
            box = page.locator(part).bounding_box()
            assert box["y"] + box["height"] < DESK["height"], part

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
