/* Supervision of one task, for SPIN. Any of three workers die, at any time, and the other PEs hear of
 * it at any later time, in any order: the task's future is full in the end.
 *
 * This repeats by hand, in another language, the rules of runtime/src/protocol. A mistake would
 * have to be made twice to be overlooked:
 *
 *   here                            there
 *   Home                            the `Node` of the PE that spawned the task, and its `Host`
 *   Worker                          the `Node` and `Host` of any other PE
 *   replica, age, from, to          supervision.rs: `Record` (`At(pe)`: `from` and `to` are that PE)
 *   waiting                         supervision.rs: `Location::Lost`, `Supervision::lost`
 *   locate, is_current, is_news     supervision.rs: `Supervision::record_news`; node.rs: `Node::handle_news`
 *   is_known_dead                   node.rs: the end of `Node::handle_news`
 *   lose                            supervision.rs: `Supervision::lose`; recovery.rs: `Node::lose`
 *   home_takes_letter: SCHEDULE     supervision.rs: `Supervision::record_return`
 *   home_takes_letter: RESULT       node.rs: `Node::handle`; `Supervision::forget`, `Host::fill`
 *   worker_takes_schedule           fishing.rs: `Node::take_in`
 *   Home gives what waits           recovery.rs: `Node::share_lost`; `Supervision::{recover, record_departure}`
 *   Home gives from its pool        fishing.rs: `Node::share`, `Node::hand_on`; `Supervision::record_departure`
 *   Worker gives from its pool      fishing.rs: `Node::share`, `Node::hand_on`
 *   home_hears_of, worker_hears_of  node.rs: `Node::mark_dead`
 *   home_is_alone                   recovery.rs: `Node::recover_alone`
 *   is_read                         node.rs: the beginning of `Node::handle`
 *   to_home, wire                   the promise of `Host::send`: messages between two PEs stay in order,
 *                                   and none is lost between living PEs
 *
 * Left out: FISHes (here any PE may steal from any other at any time, which is more than FISHes
 * allow), placed and unsupervised tasks, the limit of replicas, the end of the job.
 */

#ifndef MORE_HOPS
#define MORE_HOPS 0     /* 1 for a longer search */
#endif
#ifndef MORTALS
#define MORTALS 3       /* 2 for a shorter search: no more workers die */
#endif

#define HOME 0
#define PES 4
#define REPLICAS 7      /* one death costs two copies at most, see `may_take` */

mtype = { SCHEDULE, NOTIFY, ACK, RESULT };

/* Messages on their way, oldest first. To the home: kind, replica, age, thief of a NOTIFY. To a
 * worker: the replica and age of a task in a SCHEDULE. */
chan to_home[PES] = [6] of { mtype, byte, byte, byte };
chan wire[PES * PES] = [3] of { byte, byte };
#define between(from, to) wire[(from) * PES + (to)]

typedef Pool { byte age[REPLICAS] };    /* 1 + the age of a copy that waits there; 0: no such copy */
Pool pool[PES];

typedef Dead { bool pe[PES] };
Dead knows[PES];        /* knows[q].pe[p]: q has been told that p is dead */
bool mortal[PES];       /* dies at some time; the others live for ever */
bool alive[PES];
bool fish[PES];         /* a FISH of this PE, if it is dead, may still be on its way */
byte hops_left;          /* how often PEs other than the home may still give away a copy */

/* The home's record: the task is on its way from `from` to `to`; if these are equal, it is there. */
byte replica, age, from, to;
bool waiting;           /* the copy that replaces a lost one waits for a thief */
bool future_full;

/* The rules that the claim depends on. Without any one of them the check must fail. */
#ifdef WITHOUT_KNOWN_DEAD_RULE
#define is_known_dead(p) false
#else
#define is_known_dead(p) knows[HOME].pe[p]
#endif
#ifdef WITHOUT_AGE_RULE
#define is_news(years) true
#else
#define is_news(years) (years > age)
#endif
#ifdef WITHOUT_REPLICA_RULE
#define is_current(number) true
#else
#define is_current(number) (number == replica)
#endif

/* A PE reads no message from a PE that it knows to be dead. Until then it reads what the dead PE
 * sent before. */
#define is_read(sender, receiver) (alive[receiver] && !knows[receiver].pe[sender])

inline send_home(kind, number, years, thief_of_notify) {
    if
    :: is_read(me, HOME) ->
        assert(nfull(to_home[me]));
        to_home[me] ! kind(number, years, thief_of_notify)
    :: else
    fi
}

inline send_schedule(sender, receiver, number, years) {
    if
    :: !is_read(sender, receiver)
    :: else ->
        assert(nfull(between(sender, receiver)));
        between(sender, receiver) ! number, years
    fi
}

inline lose_letters(sender, receiver) {
    do
    :: nempty(between(sender, receiver)) -> between(sender, receiver) ? _, _
    :: empty(between(sender, receiver)) -> break
    od
}

/* The future is full. All else is reset, since it does not matter any more: that saves states. */
inline fill() {
    for (a : 0 .. PES - 1) {
        do
        :: nempty(to_home[a]) -> to_home[a] ? _(_, _, _)
        :: empty(to_home[a]) -> break
        od;
        for (r : 0 .. REPLICAS - 1) { pool[a].age[r] = 0 }
        for (r : 0 .. PES - 1) {
            knows[a].pe[r] = false;
            lose_letters(a, r)
        }
        mortal[a] = false;
        alive[a] = false;
        fish[a] = false
    }
    replica = 0; age = 0; from = 0; to = 0; hops_left = 0;
    waiting = false;
    future_full = true
}

/* The task is lost; a copy replaces it. */
inline lose() {
    replica++;
    assert(replica < REPLICAS);
    age = 0;
    from = HOME;
    to = HOME;
    waiting = true
}

/* The home has received a NOTIFY or an ACK. */
inline locate(number, years, source, target) {
    if
    :: is_current(number) && is_news(years) ->
        age = years;
        from = source;
        to = target;
        if
        :: is_known_dead(to) -> lose()      /* `from` has just been heard */
        :: else
        fi
    :: else
    fi
}

inline home_takes_letter(sender) {
    to_home[sender] ? kind(r, a, thief);
    if
    :: kind == NOTIFY -> locate(r, a, sender, thief)
    :: kind == ACK -> locate(r, a, sender, sender)
    :: kind == RESULT -> fill()
    :: kind == SCHEDULE && r == replica ->      /* the home has stolen it back */
        age = a + 1;
        from = HOME;
        to = HOME;
        pool[HOME].age[r] = 1 + age
    :: else                                     /* an older copy is dropped */
    fi;
    kind = 0; r = 0; a = 0; thief = 0
}

inline worker_takes_schedule(victim) {
    between(victim, me) ? r, a;
    if
    :: victim != HOME ->
        a++;
        send_home(ACK, r, a, 0)
    :: else
    fi;
    pool[me].age[r] = 1 + a;
    r = 0; a = 0
}

#define copy(n) pool[me].age[n]
#define has_copy (copy(0) || copy(1) || copy(2) || copy(3) || copy(4) || copy(5) || copy(6))

inline choose_copy() {
    if
    :: copy(0) -> r = 0 :: copy(1) -> r = 1 :: copy(2) -> r = 2 :: copy(3) -> r = 3
    :: copy(4) -> r = 4 :: copy(5) -> r = 5 :: copy(6) -> r = 6
    fi
}

/* Whether `victim` may give a task to `thief_pe`. A dead PE has one FISH on its way at most. */
#define may_take(thief_pe, victim) (thief_pe != victim && !knows[victim].pe[thief_pe] && \
    (fish[thief_pe] || !knows[HOME].pe[thief_pe]))
#define some_worker_may_take(victim) \
    (may_take(1, victim) || may_take(2, victim) || may_take(3, victim))

/* The home steals too, but no task that was lost before. */
inline choose_thief(victim) {
    if
    :: victim != HOME && copy(0) -> thief = HOME
    :: may_take(1, victim) -> thief = 1
    :: may_take(2, victim) -> thief = 2
    :: may_take(3, victim) -> thief = 3
    fi;
    fish[thief] = fish[thief] && !knows[HOME].pe[thief]
}

/* `me` hears that `p` is dead. It may still live then, but will die. */
#define may_hear_of(p) (p != me && mortal[p] && !knows[me].pe[p])

inline worker_hears_of(p) {
    lose_letters(p, me);
    knows[me].pe[p] = true
}

inline home_hears_of(p) {
    knows[HOME].pe[p] = true;
    do
    :: nempty(to_home[p]) -> to_home[p] ? _(_, _, _)
    :: empty(to_home[p]) -> break
    od;
    if
    :: from == p || to == p -> lose()
    :: else
    fi
}

#define home_is_alone (knows[HOME].pe[1] && knows[HOME].pe[2] && knows[HOME].pe[3])

proctype Home(byte me) {
    mtype kind;
    byte thief, r, a;
end:
    do
    :: d_step { !future_full && nempty(to_home[1]) -> home_takes_letter(1) }
    :: d_step { !future_full && nempty(to_home[2]) -> home_takes_letter(2) }
    :: d_step { !future_full && nempty(to_home[3]) -> home_takes_letter(3) }
    :: d_step { !future_full && may_hear_of(1) -> home_hears_of(1) }
    :: d_step { !future_full && may_hear_of(2) -> home_hears_of(2) }
    :: d_step { !future_full && may_hear_of(3) -> home_hears_of(3) }
    :: d_step { !future_full && (has_copy || waiting && home_is_alone) ->
        fill();
        r = 0; a = 0
        }
    :: atomic { !future_full && waiting && some_worker_may_take(HOME) ->
        choose_thief(HOME);
        d_step {
            waiting = false;
            age++;
            to = thief;
            send_schedule(HOME, thief, replica, age);
            thief = 0
        } }
    :: atomic { !future_full && has_copy && some_worker_may_take(HOME) ->
        choose_thief(HOME);
        choose_copy();
        d_step {
            age = copy(r);
            to = thief;
            copy(r) = 0;
            send_schedule(HOME, thief, r, age);
            thief = 0; r = 0
        } }
    od
}

proctype Worker(byte me) {
    byte thief, r, a;
end:
    do
    :: d_step { !future_full && nempty(between(HOME, me)) -> worker_takes_schedule(HOME) }
    :: d_step { !future_full && nempty(between(1, me)) -> worker_takes_schedule(1) }
    :: d_step { !future_full && nempty(between(2, me)) -> worker_takes_schedule(2) }
    :: d_step { !future_full && nempty(between(3, me)) -> worker_takes_schedule(3) }
    :: d_step { !future_full && alive[me] && may_hear_of(1) -> worker_hears_of(1) }
    :: d_step { !future_full && alive[me] && may_hear_of(2) -> worker_hears_of(2) }
    :: d_step { !future_full && alive[me] && may_hear_of(3) -> worker_hears_of(3) }
    :: atomic { !future_full && has_copy -> choose_copy();      /* runs it */
        d_step {
            copy(r) = 0;
            send_home(RESULT, r, 0, 0);
            r = 0
        } }
    :: atomic { !future_full && has_copy && hops_left > 0 &&
            (some_worker_may_take(me) || copy(0)) ->
        choose_thief(me);
        if
        :: thief == HOME -> r = 0
        :: else -> choose_copy()
        fi;
        d_step {
            hops_left--;
            a = copy(r);
            copy(r) = 0;
            send_home(NOTIFY, r, a, thief);
            if
            :: thief == HOME -> send_home(SCHEDULE, r, a, 0)
            :: else -> send_schedule(me, thief, r, a)
            fi;
            thief = 0; r = 0; a = 0
        } }
    :: d_step { !future_full && mortal[me] && alive[me] ->
        alive[me] = false;
        lose_letters(HOME, me); lose_letters(1, me); lose_letters(2, me); lose_letters(3, me);
        for (r : 0 .. REPLICAS - 1) { copy(r) = 0 }
        for (r : 0 .. PES - 1) { knows[me].pe[r] = false }
        r = 0
        }
    od
}

init {
    byte n;
    atomic {
        for (n : 0 .. PES - 1) { alive[n] = true; fish[n] = true }
        pool[HOME].age[0] = 1;
        if      /* The workers are alike. */
        :: mortal[1] = true; hops_left = 3 + MORE_HOPS
        :: mortal[1] = true; mortal[2] = true; hops_left = 1 + MORE_HOPS
#if MORTALS > 2
        :: mortal[1] = true; mortal[2] = true; mortal[3] = true; hops_left = 1 + MORE_HOPS
#endif
        fi;
        n = 0;
        run Home(HOME); run Worker(1); run Worker(2); run Worker(3)
    }
}

ltl survives { <> [] future_full }
