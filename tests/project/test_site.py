"""The site of the documentation, built as `make site` does, and opened in a browser; skipped before `make site`."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_public_names import NAMES

ROOT = Path(__file__).parents[2]
SPHINX = ROOT / ".venv-site/bin/sphinx-build"
PAGES = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "config/README.md", ROOT / "CHANGELOG.md"]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not SPHINX.is_file(), reason="`make site` has not been run")]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [SPHINX, "-W", "--keep-going", "-q", "-c", "docs", ".", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def page(site):
    """A browser's page that loads nothing from elsewhere and has no error."""
    sync_api = pytest.importorskip("playwright.sync_api")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no chromium is installed")
    troubles = []
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page()
        page.set_default_timeout(120_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("requestfailed", lambda request: troubles.append(request.url))
        page.on("request", lambda request: request.url.startswith("file:") or troubles.append(request.url))
        yield page
        chromium.close()
    assert troubles == []


def test_every_page_is_in_the_table_of_contents(site, page):
    page.goto((site / "index.html").as_uri())
    page.wait_for_url("**/README.html")
    linked = page.eval_on_selector_all(
        ".sidebar-tree a.internal", "links => links.map(link => link.href.split('#')[0])"
    )
    wanted = {(site / path.relative_to(ROOT).with_suffix(".html")).as_uri() for path in PAGES}
    assert wanted - {*linked, (site / "README.html").as_uri()} == set()


def test_a_link_leads_to_the_heading_of_another_page(site, page):
    page.goto((site / "docs/README.html").as_uri())
    page.get_by_role("link", name="Clusters").first.click()
    page.wait_for_url("**/config/README.html#clusters")
    assert page.locator("#clusters h2").inner_text().startswith("Clusters")


def test_the_api_reference_has_every_public_name(site, page):
    page.goto((site / "docs/drop-in.html").as_uri())
    shown = set(page.eval_on_selector_all("dt .descname", "names => names.map(name => name.innerText)"))
    assert {name.partition(":")[2] for name in NAMES} - shown == set()
    page.goto((site / "docs/drop-in.html").as_uri() + "#mcgrpo.estimators.estimation.estimate")
    assert re.search(r"num_generations\W+G, the rows of each group that are kept", page.inner_text("article"))
