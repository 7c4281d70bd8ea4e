"""What `make test` leaves to `make torture`, to come closer to ten minutes on two cores.

Two kinds of tests stand here: those that repeat one story at many points, of which `make test`
tells a fixed few, and those that only a change of a fake or of a neighbour's library can break.
A test that is named to pytest runs whole, and so does everything with `KOBOSHI_TESTS=all`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

Families = Mapping[str, Mapping[str, int]]
"""By file and function: of the cases, the first and then every so many; 0: none."""

AT_EACH_POINT: Families = {
    "crash/test_every_point": {
        "test_killed_there_everything_goes_on_and_nothing_happens_twice": 3,
    },
    "crash/test_approvals": {
        "test_an_approved_command_runs_once_whenever_the_gateway_dies": 3,
    },
    "crash/test_backlog": {
        "test_killed_around_the_claim_it_is_still_one_answer": 3,
    },
    "crash/test_commands_under_way": {
        "test_a_command_under_way_runs_once_and_the_model_gets_its_real_outcome": 2,
        "test_of_two_calls_side_by_side_only_the_unfinished_one_is_taken_up": 2,
    },
    "crash/test_delivery": {
        "test_no_jump_of_the_clock_silences_a_chat_or_expires_its_answer": 5,
    },
    "crash/test_killed_runner": {
        "test_a_command_without_a_runner_can_be_ended_by_a_person": 3,
    },
    "crash/test_leaving": {
        "test_an_agent_restarts_its_own_gateway_and_knows_it": 2,
    },
    "crash/test_mcp_killed": {
        "test_a_once_call_is_executed_once_and_its_outcome_is_unknown": 2,
        "test_at_every_moment_of_a_call_it_is_executed_at_most_once": 2,
    },
    "crash/test_open_questions": {
        "test_a_question_is_answered_once_in_a_later_life": 3,
    },
    "crash/test_crowd": {
        "test_a_crowd_survives_a_kill_and_two_more_during_the_recovery": 3,
    },
    "cli/test_backup": {
        "test_a_restore_that_was_killed_is_whole_or_did_not_happen": 3,
    },
    "cli/test_migrate": {
        "test_killed_at_each_step_nothing_or_all_has_moved": 3,
    },
    "cli/update/test_launcher": {
        "test_killed_at_each_step_one_version_serves": 4,
    },
    "cli/update/test_update": {
        "test_a_killed_command_leaves_one_that_serves_and_can_be_repeated": 3,
    },
    "cli/test_home_gone": {
        "test_an_idle_gateway_leaves_within_a_heartbeat": 3,
    },
    "sqlite/test_crash_points": {
        "test_a_place_that_cannot_be_understood_is_refused": 3,
    },
    "tools/test_file_changes": {
        "test_a_change_that_was_killed_is_made_once_when_it_is_run_again": 3,
    },
}
"""Killed at each point: the others are in the same stories."""

ON_A_HOMESERVER: Families = {
    "crash/test_matrix": {
        "test_killed_at_a_durable_step_it_answers_once": 2,
        "test_killed_while_it_follows_an_invitation": 2,
        "test_killed_at_any_moment_around_a_message": 0,
        "test_more_than_one_answer_holds_is_read_to_the_last_across_kills": 0,
        "test_the_homeserver_ends_and_comes_back": 0,
    },
    "crash/test_matrix_encryption": {
        "test_killed_at_a_durable_step_it_answers_once": 2,
        "test_killed_at_any_moment_around_a_message": 0,
    },
    "channels/test_matrix_encryption": {
        "test_more_people_than_one_time_keys_can_write_while_it_is_down": 0,
    },
}
"""A homeserver of Matrix costs more than all other platforms together."""

CLIENTS_OF_OTHERS: Families = {
    "channels/test_slack_fake": {
        "test_the_clients_of_slack_understand_everything_the_fake_says": 0,
    },
    "channels/test_telegram_fake_ptb": {
        "test_the_typed_client_understands_everything_the_fake_says": 0,
    },
    "channels/test_discord_fake_clients": {
        "test_both_clients_understand_everything_the_fake_says": 0,
    },
    "models/test_real_clients": {
        "test_openai_reads_the_stream_strictly": 3,
        "test_anthropic_reads_the_stream_and_puts_the_message_together": 3,
    },
}
"""The clients of others hold the fakes true."""

WITH_OTHER_VALUES: Families = {
    # It compares times; the same on SQLite stays.
    "postgres/test_search_growth": {
        "test_the_newest_hits_cost_the_same_among_a_hundred_times_as_many": 0,
    },
    "channels/test_telegram_render": {
        "test_a_hostile_text_is_shown_at_little_cost": 4,
    },
    "channels/test_telegram_split": {
        "test_hostile_answers_are_split_without_loss": 4,
        "test_large_answers_are_split_without_loss": 4,
    },
    "channels/test_catch_up_kills": {
        "test_every_message_is_stored_once_and_in_order": 3,
    },
    "cli/test_unusable_configuration": {
        "test_a_library_that_is_missing_is_told_before_a_start": 3,
    },
    "cli/test_out_of_memory": {
        "test_a_gateway_that_lacked_memory_says_so_at_its_next_start": 2,
    },
    "cli/test_torture": {
        "test_a_planted_fault_is_seen": 2,
        "test_it_ends_early_in_order": 2,
    },
    "conformance/test_fencing": {
        "test_one_who_lost_the_claim_changes_nothing": 3,
    },
    "conformance/test_clocks": {
        "test_a_wait_never_has_more_left_than_its_length": 3,
    },
    "models/test_cuts": {
        "test_a_stream_cut_at_any_byte_is_a_whole_reply_or_none": 3,
        "test_a_stream_whose_connection_breaks_is_no_reply": 3,
    },
    "tools/test_danger": {
        "test_a_long_gap_takes_no_time": 5,
    },
    "tools/test_files_inside": {
        "test_a_link_that_is_swapped_meanwhile_never_shows_the_canary": 2,
    },
    "tools/test_mcp_stdio": {
        "test_a_start_that_is_given_up_at_any_step_leaves_nothing": 0,
    },
    "sim/test_simulation": {
        "test_whatever_the_seeds_do_every_person_is_answered_once": 2,
        "test_the_same_seed_gives_the_same_history": 3,
    },
    "sim/test_state_machine": {
        "test_the_store_does_what_the_reference_says_whatever_happens": 2,
    },
    "browser/test_look": {
        "test_axe_finds_nothing_and_nothing_is_cut_off": 2,
        "test_keyboard_help_and_reduced_motion": 2,
    },
    "browser/test_chat": {
        "test_a_hit_is_scrolled_to_and_stands_out": 2,
    },
}
"""Repetitions of one look with other values."""

EVERY: Mapping[str, int] = {
    f"tests/{file}.py::{name}": every
    for families in (AT_EACH_POINT, ON_A_HOMESERVER, CLIENTS_OF_OTHERS, WITH_OTHER_VALUES)
    for file, names in families.items()
    for name, every in names.items()
}


def left_out(ids: Iterable[str]) -> list[bool]:
    """For each test, in the order in which they were found, whether `make test` leaves it out."""
    seen: Counter[str] = Counter()
    found = []
    for each in ids:
        family = each.partition("[")[0]
        every = EVERY.get(family, 1)
        found.append(every == 0 or seen[family] % every != 0)
        seen[family] += 1
    return found
