"""The holes V1 to V14 that issue 15 found, each as the change that brings it back, and the tests
that must notice."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hole:
    name: str
    module: str
    changes: tuple[tuple[str, str], ...]
    """What stands there, and what stood there once, or does the same."""
    noticed_by: tuple[str, ...]
    """Tests, of which every one must fail."""


HOLES = (
    Hole(
        "V1-approvals-are-markdown",
        "koboshi.channels.common.shown",
        (("if delivery.literal is not None:", "if False:"),),
        ("hostile/test_literal_approvals.py::test_telegram_shows_it_letter_by_letter",),
    ),
    Hole(
        "V2-what-is-too-long-is-cut",
        "koboshi.domain.approval",
        (
            (
                "is_elsewhere = units_max is not None and _units(text) > units_max",
                "is_elsewhere = 0",
            ),
        ),
        ("hostile/test_literal_approvals.py::test_what_telegram_would_cut_is_not_offered_there",),
    ),
    Hole(
        "V2-the-unseen-is-removed",
        "koboshi.domain.text",
        (
            (
                "_written_out(char) if _is_unseen(char) else char for",
                '"" if _is_unseen(char) else char for',
            ),
        ),
        ("tools/test_terminal_tool.py::test_nothing_in_the_question_hides",),
    ),
    Hole(
        "V2-the-middle-is-left-out",
        "koboshi.tools.terminal",
        (
            (
                "{exactly(approval.literal)}",
                "{exactly(approval.literal[:4_000] + '…' + approval.literal[-4_000:])}",
            ),
        ),
        ("tools/test_terminal_tool.py::test_a_very_long_command_is_shown_whole",),
    ),
    Hole(
        "V3-input-is-not-asked-about",
        "koboshi.tools.asking",
        (
            (
                'interpreter that reads it was started for that."""',
                'interpreter."""\n        return Need.NOBODY',
            ),
        ),
        ("tools/test_asking.py::test_input_is_judged_as_a_command_by_the_approval_of_its_process",),
    ),
    Hole(
        "V4-the-socket-answers-without-the-key",
        "koboshi.control.key",
        (("return hmac.compare_digest(given, self.secret.encode())", "return True"),),
        ("hostile/test_control_key.py::test_a_program_without_the_key_can_ask_for_nothing",),
    ),
    Hole(
        "V4-a-token-approves",
        "koboshi.domain.approver",
        (("return sent_by is SentBy.PERSON", "return True"),),
        ("hostile/test_approval.py::test_a_bearer_token_cannot_answer_an_approval[yes]",),
    ),
    Hole(
        "V5-the-gateway-can-be-looked-into",
        "koboshi.app.privacy",
        (('if sys.platform != "linux":', "if True:"),),
        (
            "hostile/test_own_secrets.py::"
            "test_the_environment_of_the_gateway_is_closed_to_its_own_user",
        ),
    ),
    Hole(
        "V5-secret-files-are-opened",
        "koboshi.tools.files.places",
        (("if identity_of(found) in map(identity_at, self.secrets):", "if False:"),),
        ("hostile/test_own_secrets.py::test_read_file_opens_no_secret_file[host-refusals0]",),
    ),
    Hole(
        "V5-commands-run-on-the-host",
        "koboshi.boundary.enclosure",
        (
            (
                "        if view is None:\n            return Started(",
                "        if True:\n            return Started(",
            ),
        ),
        (
            "runner/test_inside.py::test_the_home_of_the_gateway_cannot_be_read_or_changed",
            "runner/test_inside.py::"
            "test_processes_outside_keep_their_environment_and_hear_no_signal",
        ),
    ),
    Hole(
        "V6-a-forwarded-command-commands",
        "koboshi.runtime.intake",
        (("command = None if words.is_forwarded else parse_command", "command = parse_command"),),
        ("runtime/test_forwarded.py::test_forwarded_words_are_never_commands",),
    ),
    Hole(
        "V6-a-forwarded-yes-approves",
        "koboshi.domain.approval",
        (("if words.is_forwarded and kind is not QuestionKind.ANSWER:", "if False:"),),
        (
            "domain/test_approval.py::test_forwarded_words_are_no_yes_and_no_no",
            "conformance/test_approvals.py::test_forwarded_words_do_not_answer_an_approval",
        ),
    ),
    Hole(
        "V6-telegram-loses-the-mark",
        "koboshi.channels.telegram.codec",
        (("is_forwarded=message.forward_origin is not None,", "is_forwarded=False,"),),
        ("channels/test_telegram_said.py::test_a_forwarded_command_keeps_its_mark",),
    ),
    Hole(
        "V7-the-token-goes-to-any-program",
        "koboshi.cli.chat.proven",
        (("await self._prove(stream, name)", "pass"),),
        ("hostile/test_impostor.py::test_an_impostor_at_a_named_address_gets_no_token",),
    ),
    Hole(
        "V8-every-word-of-a-group-is-kept",
        "koboshi.kernel.accept",
        (
            (
                "        return _NOT_ADDRESSED\n    if not is_allowed:",
                "        return insert(\n"
                "            replace(arrival, ignored=NOT_ADDRESSED), None, *_IGNORED\n"
                "        )\n    if not is_allowed:",
            ),
        ),
        ("conformance/test_listening.py::test_what_was_passed_over_is_new_when_it_comes_again",),
    ),
    Hole(
        "V8-strangers-without-words-have-no-limit",
        "koboshi.kernel.accept",
        (("    if not is_allowed:\n", "    if not is_allowed and arrival.ignored is None:\n"),),
        ("conformance/test_people.py::test_a_flood_without_words_is_bounded_as_well",),
    ),
    Hole(
        "V9-the-link-is-logged",
        "koboshi.cli.run",
        (("link = make_link() if is_read_by_person else None", "link = make_link()"),),
        ("cli/test_open.py::test_nothing_but_a_terminal_gets_a_link",),
    ),
    Hole(
        "V10-logging-out-revokes-nothing",
        "koboshi.channels.web.entering",
        (("await self.logins.browsers.revoke(browser.browser_id)", "pass"),),
        ("hostile/test_browsers.py::test_logging_out_revokes",),
    ),
    Hole(
        "V10-a-browser-is-let-in-for-ever",
        "koboshi.kernel.browsers",
        (("cookie_hash=cookie_hash, now=tx.now_ms,", "cookie_hash=cookie_hash, now=0,"),),
        ("hostile/test_browsers.py::test_one_that_is_too_old_or_idle_is_out",),
    ),
    Hole(
        "V11-a-planted-link-is-followed",
        "koboshi.channels.common.received",
        (
            ("os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW", "os.O_CREAT | os.O_TRUNC"),
            ("os.unlink(part_of(name), dir_fd=folder)", "pass"),
            ("_FOLDER | os.O_NOFOLLOW", "_FOLDER"),
        ),
        (
            "hostile/test_planted_links.py::test_a_planted_part_is_not_followed",
            "hostile/test_planted_links.py::test_a_planted_folder_is_not_entered",
        ),
    ),
    Hole(
        "V12-half-requests-take-all-the-room",
        "koboshi.channels.common.acceptor",
        (
            (
                "        inside = (each for each in among if each in self.inside)",
                "        return False",
            ),
        ),
        ("hostile/test_half_requests.py::test_health_answers_at_once_among_half_requests[]",),
    ),
    Hole(
        "V13-a-hook-is-written-unasked",
        "koboshi.tools.asking",
        (
            (
                'return Need.NOBODY if self.holds or self.approval == "never" else Need.APPROVAL',
                "return Need.NOBODY",
            ),
        ),
        ("tools/test_asking.py::test_on_the_host_files_that_programs_run_are_asked_about",),
    ),
    Hole(
        "V14-a-mark-behind-something-unseen",
        "koboshi.domain.marks",
        (
            (
                'return _marks().sub("(koboshi)", text)',
                'return re.sub(r"(?m)^\\[koboshi\\]", "(koboshi)", text)',
            ),
        ),
        (
            "hostile/test_false_marks.py::test_a_person_cannot_write_our_mark",
            "runtime/test_marks.py::test_a_tool_cannot_print_our_mark",
        ),
    ),
)
