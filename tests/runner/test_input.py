"""What a command reads."""

from anyio import current_time

from koboshi.ports.runners import EndedBy, Life
from tests.runner.insides import everywhere
from tests.runner.yard import Yard


@everywhere
async def test_a_command_reads_what_it_is_given(yard: Yard) -> None:
    process_id = await yard.start(
        'while read -r line; do echo "got $line"; [ "$line" = end ] && exit 2; done; exit 99',
        takes_input=True,
    )

    assert await yard.runners.write(process_id, b"one\n")
    await yard.until_said(process_id, b"got one")
    assert await yard.runners.write(process_id, b"two\nend\n")
    seen = await yard.until_free(process_id)

    assert seen.ending is not None
    assert seen.ending.exit_code == 2
    assert yard.output(process_id) == b"got one\ngot two\ngot end\n"


async def test_input_can_be_given_as_soon_as_it_is_born(yard: Yard) -> None:
    for _ in range(10):
        process_id = await yard.start("read -r line; echo $line", takes_input=True)
        assert await yard.runners.write(process_id, b"early\n")
        await yard.until_free(process_id)
        assert yard.output(process_id) == b"early\n"


@everywhere
async def test_more_than_a_pipe_holds_arrives_whole(yard: Yard) -> None:
    content = b"0123456789abcde\n" * 20_000
    process_id = await yard.start(f"head -c {len(content)} | cksum", takes_input=True)

    assert await yard.runners.write(process_id, content)
    await yard.until_free(process_id)
    _, expected = await yard.run("yes 0123456789abcde | head -n 20000 | cksum")

    assert yard.output(process_id) == expected


@everywhere
async def test_a_command_without_input_sees_the_end_of_it(yard: Yard) -> None:
    process_id = await yard.start("cat; echo done")

    seen = await yard.until_free(process_id)

    assert seen.ending is not None
    assert seen.ending.by is EndedBy.ITSELF
    assert yard.output(process_id) == b"done\n"
    assert not await yard.runners.write(process_id, b"too late\n")


async def test_one_that_takes_none_and_one_that_is_unknown_are_given_nothing(yard: Yard) -> None:
    process_id = await yard.start("sleep 1000")

    assert not await yard.runners.write(process_id, b"x")
    assert not await yard.runners.write(yard.next_id(), b"x")


async def test_one_that_has_ended_is_given_nothing(yard: Yard) -> None:
    process_id = await yard.start("true", takes_input=True)
    await yard.until_free(process_id)

    assert not await yard.runners.write(process_id, b"x")


async def test_one_that_does_not_read_does_not_hold_us_up(yard: Yard) -> None:
    yard.runners.input_within_s = 0.2
    process_id = await yard.start("sleep 1000", takes_input=True)
    began = current_time()

    assert not await yard.runners.write(process_id, bytes(1_000_000))

    assert current_time() - began < 5
    assert yard.runners.look(process_id).life is Life.ALIVE
