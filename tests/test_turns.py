from collections import Counter

from core.attempt import Attempt, Question, RunState
from core.turns import URGENT_IN_A_ROW, Seat, Turns


def new_attempt() -> Attempt:
    return Attempt(max_steps=1000, snapshot_every=None, max_snapshots=200)


def make_turns(max_active: int = 8) -> Turns:
    turns = Turns(max_active, lambda: 0.0)
    turns.changed.acquire()  # as every caller must
    return turns


def seated(turns: Turns, *, wanted: bool = True) -> Seat:
    seat = Seat(lambda: None, new_attempt, 0.0)
    if wanted:
        start(turns, seat)
    return seat


def start(turns: Turns, seat: Seat) -> None:
    seat.attempt.go()
    turns.settle(seat)


def pause(turns: Turns, seat: Seat) -> None:
    seat.attempt.rest()
    turns.settle(seat)


def press_step(turns: Turns, seat: Seat, count: int = 1) -> None:
    seat.attempt.go_by_hand(count)
    turns.settle(seat, urgent=True)


def serve(turns: Turns, seconds: dict[Seat, float], turns_taken: int) -> Counter:
    used: Counter = Counter()
    for _ in range(turns_taken):
        seat = turns.pick()
        turns.charge(seat, seconds[seat])
        turns.settle(seat)
        used[seat] += seconds[seat]
    return used


def test_nobody_is_picked_where_nobody_wants_a_turn():
    turns = make_turns()
    seated(turns, wanted=False)
    assert turns.pick() is None


def test_equal_runs_come_round_in_their_order():
    turns = make_turns()
    seats = [seated(turns) for _ in range(3)]
    picked = []
    for _ in range(7):
        picked.append(turns.pick())
        turns.charge(picked[-1], 0.5)
    assert picked == [*seats, *seats, seats[0]]


def test_slow_steps_get_the_same_time_not_the_same_turns():
    turns = make_turns()
    slow, *quick = [seated(turns) for _ in range(3)]
    used = serve(turns, {slow: 1.0, quick[0]: 0.0625, quick[1]: 0.0625}, 400)
    assert abs(used[slow] - used[quick[0]]) <= 1.0
    assert abs(used[quick[0]] - used[quick[1]]) <= 0.0625


def test_a_rest_is_no_credit():
    turns = make_turns()
    rested, steady = seated(turns), seated(turns)
    pause(turns, rested)
    serve(turns, {steady: 0.5}, 100)
    start(turns, rested)
    used = serve(turns, {rested: 0.5, steady: 0.5}, 10)
    assert abs(used[rested] - used[steady]) <= 0.5


def test_a_newcomer_does_not_wait_until_it_has_caught_up():
    turns = make_turns()
    old = seated(turns)
    serve(turns, {old: 0.5}, 100)
    new = seated(turns)
    used = serve(turns, {old: 0.5, new: 0.5}, 10)
    assert abs(used[old] - used[new]) <= 0.5


def test_the_queue_is_first_come_first_served():
    turns = make_turns(max_active=2)
    seats = [seated(turns) for _ in range(5)]
    assert [seat.place for seat in seats] == [None, None, 1, 2, 3]
    states = [seat.state for seat in seats]
    assert states == [RunState.RUNNING] * 2 + [RunState.QUEUED] * 3
    pause(turns, seats[0])
    assert [seat.place for seat in seats] == [None, None, None, 1, 2]
    start(turns, seats[0])
    assert [seat.place for seat in seats] == [3, None, None, 1, 2]
    assert seats[2].state is RunState.RUNNING


def test_only_the_active_get_turns():
    turns = make_turns(max_active=2)
    seats = [seated(turns) for _ in range(5)]
    used = serve(turns, dict.fromkeys(seats, 0.5), 40)
    assert set(used) == set(seats[:2])


def test_a_change_of_place_is_a_new_version():
    turns = make_turns(max_active=1)
    first, second, third = [seated(turns) for _ in range(3)]
    versions = second.version, third.version
    pause(turns, first)
    assert second.version > versions[0]
    assert third.version > versions[1]


def test_a_single_step_goes_before_the_line_without_a_place():
    turns = make_turns(max_active=1)
    seats = [seated(turns) for _ in range(2)]
    guest = seated(turns, wanted=False)
    turns.charge(turns.pick(), 0.5)
    press_step(turns, guest)
    assert turns.pick() is guest
    assert [seat.place for seat in seats] == [None, 1]


def test_many_steps_go_first_once_and_then_take_turns():
    turns = make_turns()
    steady, guest = seated(turns), seated(turns, wanted=False)
    press_step(turns, guest, 1000)
    assert turns.pick() is guest
    turns.charge(guest, 0.5)
    turns.settle(guest)
    used = serve(turns, {steady: 0.5, guest: 0.5}, 10)
    assert abs(used[steady] - (used[guest] + 0.5)) <= 0.5


def test_a_flood_of_requests_leaves_a_turn_to_the_line():
    turns = make_turns()
    steady = seated(turns)
    turns.charge(steady, 0.0)
    guests = [seated(turns, wanted=False) for _ in range(3 * URGENT_IN_A_ROW)]
    for guest in guests:
        press_step(turns, guest)
    picked = []
    for _ in range(URGENT_IN_A_ROW + 1):
        seat = turns.pick()
        picked.append(seat)
        turns.charge(seat, 0.5)
        if seat is not steady:
            pause(turns, seat)
    assert picked == [*guests[:URGENT_IN_A_ROW], steady]


def test_a_parked_run_leaves_the_line_and_keeps_its_wishes():
    turns = make_turns()
    seat = seated(turns)
    seat.attempt.questions.append(Question(lambda trainer: 1, None))
    turns.settle(seat, urgent=True)
    seat.parked_at = 0.0
    turns.settle(seat)
    assert turns.pick() is None
    assert not turns.urgent
    seat.parked_at = None
    turns.settle(seat)
    assert turns.pick() is seat


def test_a_closed_run_is_gone_from_everywhere():
    turns = make_turns(max_active=1)
    first, second = seated(turns), seated(turns)
    press_step(turns, first)
    turns.close(first)
    assert first.state is RunState.CLOSED
    assert (turns.line, turns.guests, list(turns.urgent)) == ([second], [], [])
    assert second.state is RunState.RUNNING
