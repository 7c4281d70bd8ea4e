"""A turn as a LangGraph graph on its SQLite saver, durability "sync". Prints one JSON line."""

import asyncio
from operator import add
from typing import Annotated, TypedDict

from langchain_core.runnables import RunnableConfig  # type: ignore[import-not-found]
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # type: ignore[import-not-found]
from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]

from benchmarks.steady import TEXT_BYTES, Load, load_of, measure, parser, print_line, words


class State(TypedDict):
    client: int
    number: int
    transcript: Annotated[list[dict[str, object]], add]
    delivered: Annotated[list[str], add]


async def ask_model(state: State) -> dict[str, object]:
    calls = [{"tool": "read", "arguments": f'{{"path": "file-{place}"}}'} for place in (1, 2)]
    reply = words(state["client"], state["number"], "reply")
    return {"transcript": [{"kind": "reply", "text": reply, "calls": calls}]}


async def run_tool_1(state: State) -> dict[str, object]:
    result = words(state["client"], state["number"], "result 1")
    return {"transcript": [{"kind": "result", "call": 1, "text": result}]}


async def run_tool_2(state: State) -> dict[str, object]:
    result = words(state["client"], state["number"], "result 2")
    return {"transcript": [{"kind": "result", "call": 2, "text": result}]}


async def make_answer(state: State) -> dict[str, object]:
    answer = words(state["client"], state["number"], "answer", 2 * TEXT_BYTES)
    return {"transcript": [{"kind": "answer", "text": answer}]}


async def deliver_1(state: State) -> dict[str, object]:
    return {"delivered": [f"platform-{state['client']}-{state['number']}-1"]}


async def deliver_2(state: State) -> dict[str, object]:
    return {"delivered": [f"platform-{state['client']}-{state['number']}-2"]}


def graph() -> StateGraph:
    """The two tools are one superstep, which saves LangGraph a checkpoint."""
    drawn = StateGraph(State)
    for node in (ask_model, run_tool_1, run_tool_2, make_answer, deliver_1, deliver_2):
        drawn.add_node(node.__name__, node)
    drawn.add_edge(START, "ask_model")
    drawn.add_edge("ask_model", "run_tool_1")
    drawn.add_edge("ask_model", "run_tool_2")
    drawn.add_edge(["run_tool_1", "run_tool_2"], "make_answer")
    drawn.add_edge("make_answer", "deliver_1")
    drawn.add_edge("deliver_1", "deliver_2")
    drawn.add_edge("deliver_2", END)
    return drawn


async def run(load: Load) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(load.file)) as saver:
        await saver.setup()
        compiled = graph().compile(checkpointer=saver)

        async def turn(client: int, number: int) -> None:
            session = f"session-{client}-{number // load.turns_per_session}"
            config: RunnableConfig = {"configurable": {"thread_id": session}}
            message: dict[str, object] = {
                "kind": "message",
                "text": words(client, number, "message"),
            }
            begin: State = {
                "client": client,
                "number": number,
                "transcript": [message],
                "delivered": [],
            }
            await compiled.ainvoke(begin, config, durability="sync")

        print_line(await measure(turn, load))


def main() -> None:
    asyncio.run(run(load_of(parser(__doc__ or "").parse_args())))


if __name__ == "__main__":
    main()
