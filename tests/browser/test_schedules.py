"""Schedules and goals on the page: what comes next, what became of the last times, and why."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.visit import LOOKS, Visit, link_of, named, visiting
from tests.cli.process import gateway, koboshi
from tests.harness.moved_clock import Wall

FIRST, *OTHERS = LOOKS


def shows_the_goal(visit: Visit) -> None:
    """With the button that pauses it, where no one has to look for it."""
    visit.go("#/schedules")
    card = visit.page.locator(".rows > li", has_text="look around")
    expect(card).to_contain_text("step 2 of 20")
    expect(card.get_by_role("button", name="Pause", exact=True)).to_be_in_viewport()


def test_the_page_shows_next_times_last_occasions_and_how_a_goal_stands(
    browser: Browser, tmp_path: Path
) -> None:
    """Issue 18: a page with the next times, the last occasions and why each; a card with step n of
    N, the reason of the last verdict, and Pause. The reminder is told without a turn."""
    home, wall = tmp_path / "home", Wall(tmp_path / "ahead")
    with (
        gateway(home, command=wall.command, **wall.environment) as one,
        visiting(browser, width=FIRST[0], is_dark=FIRST[1]) as visit,
    ):
        visit.open(link_of(one))
        visit.say("/cron add fresh every 30 minutes echo the news")
        visit.say("/remind in 2 hours <b>tea</b>")
        visit.say("/cron run c1")
        expect(visit.answers.filter(has_text="the news").last).to_be_visible()
        visit.say("/goal look around")
        expect(visit.items.filter(has_text="I am stuck with the goal").last).to_be_visible()
        wall.move(seconds=3 * 3_600 + 60)
        expect(visit.items.filter(has_text="<b>tea</b>").last).to_contain_text("Reminder, due")
        expect(visit.items.filter(has_text="Not done").last).to_contain_text("«echo the news»")

        visit.go("#/schedules")
        row = visit.page.locator(".rows > li", has_text="echo the news")
        expect(row).to_contain_text("every 30 min")
        expect(row).to_contain_text("next")
        expect(row.locator("details li", has_text="fired")).to_contain_text("a person asked for it")
        expect(row.locator("details li", has_text="missed")).to_contain_text("only the newest")
        reminder = visit.page.locator(".rows > li", has_text="c2")
        expect(reminder).to_contain_text("<b>tea</b>")
        expect(reminder.locator("details li")).to_contain_text("late")
        card = visit.page.locator(".rows > li", has_text="look around")
        expect(card).to_contain_text("step 2 of 20")
        expect(card).to_contain_text("an offline model cannot judge this")
        visit.picture(f"scheduled-{named(*FIRST)}")
        for width, is_dark in OTHERS:
            with visiting(browser, width=width, height=900, is_dark=is_dark) as other:
                other.open(link_of(one))
                shows_the_goal(other)
                other.picture(f"scheduled-{named(width, is_dark)}")
        card.get_by_role("button", name="Pause", exact=True).click()
        expect(card).to_contain_text("paused, step 2 of 20")
        row.get_by_role("button", name="Pause", exact=True).click()
        expect(row.get_by_role("button", name="Resume", exact=True)).to_be_visible()
        row.get_by_role("button", name="Remove", exact=True).click()
        expect(row).to_have_count(0)
        assert visit.errors == []

        explained = koboshi("explain", "c2", home=home)
        assert "\nwhy       its only time has come" in explained.out
        goal = koboshi("explain", "g1", home=home)
        assert "\nwhy       it goes on when a person says /goal resume (rule by-person)" in goal.out
        traced = koboshi("trace", "c1", home=home)
        assert "schedule:1" in traced.out
