"""Every metric: its kind, its labels and what it tells. The page, the documentation, the alerts and
the dashboard know no others."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricTold:
    kind: str
    """counter, gauge or histogram."""
    labels: tuple[str, ...]
    words: str


def _counter(words: str, *labels: str) -> MetricTold:
    return MetricTold("counter", labels, words)


def _gauge(words: str, *labels: str) -> MetricTold:
    return MetricTold("gauge", labels, words)


def _histogram(words: str, *labels: str) -> MetricTold:
    return MetricTold("histogram", labels, words)


METRICS: dict[str, MetricTold] = {
    "koboshi_build_info": _gauge("What runs here.", "version", "sqlite", "python"),
    "koboshi_boot_time_seconds": _gauge("When this boot began, since 1970."),
    "koboshi_unclean_boots_total": _counter(
        "Boots of this home, ever, that did not end by their own will.", "cause"
    ),
    "koboshi_safe_mode": _gauge("1 while the boot breaker holds turns back."),
    "koboshi_draining": _gauge("1 while the gateway leaves."),
    "koboshi_ready": _gauge("1 where a check of /readyz holds.", "check"),
    "koboshi_adapter_up": _gauge("1 where a platform is reached.", "platform", "account"),
    "koboshi_adapter_heard_age_seconds": _gauge(
        "How long ago a platform was last heard.", "platform", "account"
    ),
    "koboshi_adapter_chats_behind": _gauge(
        "Chats whose older messages are still being fetched.", "platform", "account"
    ),
    "koboshi_adapter_behind_seconds": _gauge(
        "For how long older messages are being fetched.", "platform", "account"
    ),
    "koboshi_neighbour_up": _gauge(
        "1 where a neighbour did what it was last asked for: the model, and each MCP server.",
        "neighbour",
    ),
    "koboshi_budget_refusals_total": _counter(
        "Calls that were not made because the budget of the day was used.", "model"
    ),
    "koboshi_model_benches_total": _counter(
        "Times that a model of the chain was benched, by why.", "model", "trouble"
    ),
    "koboshi_adapter_reconnects_total": _counter(
        "Times that a platform was connected to again.", "platform"
    ),
    "koboshi_thaw_events_total": _counter("Times the machine slept, or its clock was set forward."),
    "koboshi_inbox_received_total": _counter(
        "Messages, commands and reports that were stored.", "platform", "kind"
    ),
    "koboshi_inbox_duplicates_total": _counter(
        "Messages that a platform brought again.", "platform"
    ),
    "koboshi_inbox_refused_total": _counter("What arrived and was set aside.", "reason"),
    "koboshi_inbox_depth": _gauge("What waits to be worked on."),
    "koboshi_inbox_oldest_age_seconds": _gauge("How long the oldest waits."),
    "koboshi_accept_duration_seconds": _histogram(
        "From what a platform brings until it is stored.", "platform"
    ),
    "koboshi_message_latency_seconds": _histogram(
        "From a message to its whole answer at the platform.", "platform"
    ),
    "koboshi_turns_total": _counter("Turns that ended.", "outcome"),
    "koboshi_turn_duration_seconds": _histogram("From a turn's opening to its end.", "outcome"),
    "koboshi_turns_running": _gauge("Turns that this gateway works on."),
    "koboshi_turns_waiting": _gauge(
        "Open turns that no worker runs, by where they stand (a state, held-back, interrupted).",
        "for",
    ),
    "koboshi_turn_resumes_total": _counter(
        "What recovery decided, by the rule that spoke.", "decision", "reason"
    ),
    "koboshi_turn_quarantines_total": _counter(
        "Turns that recovery gave up, by the rule that spoke.", "reason"
    ),
    "koboshi_steps_total": _counter("Steps appended to transcripts.", "kind"),
    "koboshi_calls_started_total": _counter("Calls of tools that were started."),
    "koboshi_tool_duration_seconds": _histogram("One call of a tool that was run.", "tool"),
    "koboshi_tool_unknown_outcomes_total": _counter(
        "Calls of which it is unknown whether they had effect.", "tool", "effect"
    ),
    "koboshi_approvals_total": _counter(
        "Calls that a person was asked about, by what they said.", "decision"
    ),
    "koboshi_llm_request_duration_seconds": _histogram(
        "One request to the model, by how it went.", "provider", "model", "outcome"
    ),
    "koboshi_llm_tokens_total": _counter(
        "What the model was shown and what it wrote, as it counts.",
        *("provider", "model", "direction"),
    ),
    "koboshi_outbox_depth": _gauge("Deliveries that wait to be sent."),
    "koboshi_outbox_oldest_age_seconds": _gauge("How long the oldest of them waits."),
    "koboshi_outbox_held": _gauge("Deliveries that a person has to release or drop."),
    "koboshi_outbox_ambiguous": _gauge(
        "Waiting deliveries of which an earlier send has an unknown outcome."
    ),
    "koboshi_outbox_ambiguous_total": _counter(
        "Sends of unknown outcome (open), and what became of them: arrived, absent, labelled.",
        *("platform", "resolution"),
    ),
    "koboshi_outbox_sent_total": _counter("Deliveries that a platform has taken.", "platform"),
    "koboshi_outbox_dead_total": _counter(
        "Deliveries that were rejected or given up.", "platform", "reason"
    ),
    "koboshi_outbox_postponed_total": _counter("Sends that have to be made again.", "platform"),
    "koboshi_send_duration_seconds": _histogram(
        "One try to deliver, by how it went.", "platform", "outcome"
    ),
    "koboshi_rate_limited_seconds_total": _counter(
        "How long platforms asked us to wait, all together.", "platform"
    ),
    "koboshi_jobs_running": _gauge("Background processes that have no end."),
    "koboshi_jobs_total": _counter("Processes that ended, by how.", "outcome"),
    "koboshi_occasions_total": _counter(
        "Due times of schedules, by what became of them.", "verdict"
    ),
    "koboshi_memory_files_read_total": _counter(
        "Memory files that were found stale or edited by hand, by what became of them.", "fate"
    ),
    "koboshi_goal_moves_total": _counter("Moves of standing goals, by where to.", "state"),
    "koboshi_children_open": _gauge("Sub-agents that work, or wait for others to end."),
    "koboshi_children_total": _counter("Sub-agents that ended, by how.", "outcome"),
    "koboshi_agent_processes": _gauge("Foreign agents that live, by their names.", "agent"),
    "koboshi_agent_memory_bytes": _gauge(
        "The memory of foreign agents with all that they started, by their names.", "agent"
    ),
    "koboshi_lease_fenced_total": _counter(
        "Writes that were refused because their claim no longer held."
    ),
    "koboshi_db_commits_total": _counter("Transactions of this boot."),
    "koboshi_db_commit_duration_seconds": _histogram(
        "From the first statement of a transaction until it is durable."
    ),
    "koboshi_db_errors_total": _counter("Commits that had to be tried again, by why.", "code"),
    "koboshi_db_size_bytes": _gauge("The database; missing if it is not in the home."),
    "koboshi_db_wal_bytes": _gauge("Its log."),
    "koboshi_db_backup_age_seconds": _gauge("Since the newest backup; missing if there is none."),
    "koboshi_db_integrity_last_ok_timestamp_seconds": _gauge(
        "When a whole copy was last read from its first page to its last; missing if never."
    ),
    "koboshi_burials_total": _counter("Nodes that this one has found dead."),
    "koboshi_account_owner": _gauge(
        "1 where this node receives and sends as the account of a channel, 0 where another does.",
        "channel",
    ),
    "koboshi_lease_age_seconds": _gauge(
        "Since this node gave the last sign of life that PostgreSQL has confirmed."
    ),
    "koboshi_lock_wait_seconds": _histogram(
        "The round trip in which a batch gets the locks of its chats on PostgreSQL."
    ),
    "koboshi_store_rounds_total": _counter("Round trips of the writer to PostgreSQL."),
    "koboshi_store_reconnects_total": _counter("Connections of the writer that were lost."),
    "koboshi_unknown_commits_total": _counter(
        "Commits whose connection was lost before the answer, by what became of them.",
        "resolution",
    ),
    "koboshi_event_loop_lag_seconds": _gauge("How late the event loop was, the last time."),
    "koboshi_disk_free_bytes": _gauge("Free space where the home is."),
    "koboshi_disk_reserve_bytes": _gauge("What is kept back for a full disk; 0 while it is used."),
    "koboshi_auth_failures_total": _counter(
        "Requests that were turned away for lack of a token.", "surface"
    ),
    "process_cpu_seconds_total": _counter("Processor time of the process."),
    "process_start_time_seconds": _gauge("When the process began, since 1970."),
    "process_resident_memory_bytes": _gauge("Memory in use."),
    "process_open_fds": _gauge("Open files."),
}
