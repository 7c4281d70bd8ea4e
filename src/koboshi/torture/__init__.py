"""Throw-away gateways that are killed again and again while people talk to them, and the tally.

It knows the gateway from outside: its command, its HTTP interface, what its commands do to a file,
and the rows that it leaves behind. `plan` and `errands` say what is going to happen, all of it from
one seed; `trial` does it in one home; `check` is pure and finds what is wrong with what was seen.
"""

from koboshi.torture.campaign import Campaign, CampaignSettings, Report, clear, homes_here
from koboshi.torture.plan import Aim

__all__ = ["Aim", "Campaign", "CampaignSettings", "Report", "clear", "homes_here"]
