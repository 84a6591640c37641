"""What can hold a flow: the causes, and the reasons for which the accounting gives a stretch of time to one."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

APPLICATION = "application-limited"
WINDOW = "receiver-window-limited"
STALLED = "receiver-stalled"
SEND_BUFFER = "send-buffer-limited"
LOSS = "loss-limited"
TIMEOUT = "timeout-limited"
REORDERING = "reordering-limited"
BOTTLENECK = "bottleneck-limited"
SLOW_START = "slow-start-limited"
UNKNOWN = "unknown"

CAUSES = (
    APPLICATION,
    WINDOW,
    STALLED,
    SEND_BUFFER,
    LOSS,
    TIMEOUT,
    REORDERING,
    BOTTLENECK,
    SLOW_START,
    UNKNOWN,
)

IDLE = "nothing was outstanding"

AWAITING = "nothing was outstanding, and the other end's data came before more was sent"

TURN = "what was sent was acknowledged, and more was sent only after the other end's data"

SMALL_WAITS = "the next data, less than a segment, went with the ACK of all before it, as by Nagle's algorithm"

ONE_FLIGHT = "all that was sent was under way at once"

BY_CLOCK = "data went by the sender's clock, not with ACKs: its application's, or pacing"

PERHAPS_FULL = "data came as fast as the path sends them, and nothing tells whether a queue grew"

UNANSWERED = "nothing came back any more, whatever was sent again"

AHEAD = "ACKs come before the data that they acknowledge: other clocks, or out of order"

TIMER_RAN = "the retransmission timer ran"

NEEDLESS = "the retransmission timer ran out though no data was lost"

ACK_ASTRAY = "the sender waited for an ACK that is in the capture but did not reach it"

OVERFLOWED = "fast recovery from losses of a queue that the flow had filled"

AFTER = "the window had not yet grown to a limit again"

MARKED = "the sender answered congestion marks"

AFTER_MARKS = "congestion marks had reduced the window, and it had not yet grown to a limit again"


class Reason(IntEnum):
    """Why a stretch of time is given to its cause: a rule of the accounting."""

    ONE_WAY = 0
    NO_WINDOW = 1
    TIMER = 2
    NEEDLESS_TIMER = 3
    NEEDLESS_TIMER_LATE = 4
    RECOVERY = 5
    NEEDLESS_RECOVERY = 6
    QUEUE_RECOVERY = 7
    PAUSE = 8
    BEFORE_PAUSE = 9
    SHORT = 10
    PATH_FULL = 11
    PATH_FILLED = 12
    WINDOW_FULL = 13
    AFTER_LOSS = 14
    AFTER_TIMEOUT = 15
    AFTER_REORDERING = 16
    AFTER_QUEUE_LOSS = 17
    SLOW_START_AFTER_TIMEOUT = 18
    FLAT = 19
    GROWING = 20
    NO_TIMER = 21
    NO_LIMIT = 22
    UNANSWERED = 23
    ACK_LOST = 24
    OTHER_END = 25
    OWN_CLOCK = 26
    ONE_FLIGHT = 27
    TURN = 28
    WINDOW_USED = 29
    SMALL_WAITS = 30
    PROBE = 31
    MARKED = 32
    AFTER_MARKS = 33
    AHEAD = 34
    PERHAPS_FULL = 35


_SAYS: dict[Reason, tuple[str, str]] = {
    Reason.ONE_WAY: (UNKNOWN, "one direction is missing: no flight, no round trip"),
    Reason.NO_WINDOW: (STALLED, "no window was advertised"),
    Reason.TIMER: (TIMEOUT, TIMER_RAN),
    Reason.NEEDLESS_TIMER: (TIMEOUT, NEEDLESS),
    Reason.NEEDLESS_TIMER_LATE: (REORDERING, NEEDLESS),
    Reason.RECOVERY: (LOSS, "fast recovery"),
    Reason.NEEDLESS_RECOVERY: (REORDERING, "fast recovery though nothing was lost"),
    Reason.QUEUE_RECOVERY: (BOTTLENECK, OVERFLOWED),
    Reason.PAUSE: (APPLICATION, IDLE),
    Reason.BEFORE_PAUSE: (APPLICATION, "all that the application had written was sent, and a pause followed"),
    Reason.SHORT: (APPLICATION, "short segments, though the window has room"),
    Reason.PATH_FULL: (BOTTLENECK, "a queue stood, and the rate was the path's"),
    Reason.PATH_FILLED: (BOTTLENECK, "the flow had filled the path's queue"),
    Reason.WINDOW_FULL: (WINDOW, "the advertised window was full"),
    Reason.WINDOW_USED: (WINDOW, "the advertised window was full before and after, and what it let go was sent"),
    Reason.AFTER_LOSS: (LOSS, AFTER),
    Reason.AFTER_TIMEOUT: (TIMEOUT, AFTER),
    Reason.AFTER_REORDERING: (REORDERING, AFTER),
    Reason.AFTER_QUEUE_LOSS: (BOTTLENECK, AFTER),
    Reason.SLOW_START_AFTER_TIMEOUT: (TIMEOUT, "slow start after a timeout"),
    Reason.FLAT: (SEND_BUFFER, "the flight does not grow, though the window has room"),
    Reason.GROWING: (SLOW_START, "the window was still growing"),
    Reason.NO_TIMER: (
        UNKNOWN,
        "data was outstanding for longer than a timer allows: the capture misses something",
    ),
    Reason.NO_LIMIT: (UNKNOWN, "no limit shows"),
    Reason.UNANSWERED: (UNKNOWN, UNANSWERED),
    Reason.ACK_LOST: (TIMEOUT, ACK_ASTRAY),
    Reason.OTHER_END: (APPLICATION, AWAITING),
    Reason.ONE_FLIGHT: (SLOW_START, ONE_FLIGHT),
    Reason.TURN: (APPLICATION, TURN),
    Reason.OWN_CLOCK: (UNKNOWN, BY_CLOCK),
    Reason.SMALL_WAITS: (APPLICATION, SMALL_WAITS),
    Reason.PROBE: (LOSS, "the sender waited to probe for a tail that was lost"),
    Reason.MARKED: (BOTTLENECK, MARKED),
    Reason.AFTER_MARKS: (BOTTLENECK, AFTER_MARKS),
    Reason.AHEAD: (UNKNOWN, AHEAD),
    Reason.PERHAPS_FULL: (UNKNOWN, PERHAPS_FULL),
}

CAUSE_OF = np.array([_SAYS[reason][0] for reason in Reason], dtype=object)
"""The cause of every reason, by its number."""

RULE_OF = np.array([_SAYS[reason][1] for reason in Reason], dtype=object)
"""The rule of every reason in words, by its number."""
