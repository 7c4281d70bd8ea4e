"""What a seed is about: each has a plot, which says what goes wrong most."""

from enum import StrEnum


class Plot(StrEnum):
    COMMON = "common"  # a little of everything
    STEPS = "steps"  # each life ends at a commit
    ROUGH = "rough"  # a platform that breaks off, hangs, wants quiet and leaves outcomes unknown
    AWAY = "away"  # hours between the lives
    DEADLY = "deadly"  # requests that kill the gateway
    CUTS = "cuts"  # /stop and /new, while work of before is under way
    PEOPLE = "people"  # groups and topics; rights are taken and given back
    CLOCK = "clock"  # the clock on the wall is set, by minutes and by days
    OUTAGE = "outage"  # the model fails for a while, or for good
    STARVED = "starved"  # runners are killed, and descriptors run out
    BOT = "bot"  # another bot takes the place of the first, in the same section
    SIDE = "side"  # two channels of which one hangs, and few places


PLOTS = (
    *(Plot.COMMON, Plot.ROUGH, Plot.AWAY, Plot.DEADLY, Plot.CUTS),
    *(Plot.STEPS, Plot.PEOPLE, Plot.CLOCK, Plot.OUTAGE, Plot.STARVED, Plot.BOT, Plot.SIDE),
)


def plot_of(seed: int) -> Plot:
    return PLOTS[seed % len(PLOTS)]


def seeds_about(plot: Plot, how_many: int) -> list[int]:
    """The first seeds with this plot."""
    places = [place for place, each in enumerate(PLOTS) if each is plot]
    seeds = sorted(place + len(PLOTS) * turn for place in places for turn in range(how_many))
    return seeds[:how_many]
