/* Transactions over several pools: pending entries, one decision object, a lease, and whoever meets what is pending.
 *
 * Each pool's journal is one list to which a process appends if it has folded all of it; journal.pml is the model of
 * how.  The pools of each transaction are both.  Two owners, a single writer in pool 0, one who settles what it
 * meets, the upkeep that deletes decisions, and a reader of both pools take part as SCENE says.
 *
 * docs/protocol.md names the rules; the functions of the code stand in brackets.
 */
byte mutant;                     /* which rule is broken; 0: none */
#define DECISION_OVERWRITES 1    /* the decision is put over one that is there */
#define DECIDE_EARLY        2    /* the owner decides before its last pending entry is in the journal */
#define BELIEVE_OWN         3    /* the owner takes "exists" for its own decision */
#define ABSENT_IS_ABORT     4    /* who finds no decision settles as aborted, without making it */
#define PASS_UNDECIDED      5    /* a single writer that conflicts does not wait */
#define NO_VECTOR           6    /* a reader of both pools does not read again what is behind */
#define NOT_AGAIN           7    /* a reader of both pools does not read again what was undecided */
#define DELETE_EARLY        8    /* the decision is deleted when the first pool has settled */
#define WAIT_UNORDERED      9    /* transactions take their pools in different orders */
#define SHOW_PENDING       10    /* a reader shows what is pending */
#define ACK_AT_DECISION    11    /* the owner answers before a pool has settled */
#define CLOSE_HELD_ONLY    12    /* before the decision is deleted, only pools that hold the transaction settle it */
#define READ_NO_DECISION   13    /* a reader does not ask for the decision of what is pending */
#define NO_GRACE           14    /* the decision is deleted while a read that began before is under way */

#define NONE 0
#define COMMIT 1
#define ABORT 2

#define PENDING 1                /* of a transaction in a pool: its entry is there, and no settling one */
#define DONE 2                   /* settled as committed */
#define UNDONE 3                 /* settled as aborted; or closed before it came */

typedef Pool {
    byte version;                /* entries so far */
    byte is[3];                  /* NONE, PENDING, DONE or UNDONE, of transactions 1 and 2 */
    byte at[3];                  /* the version of the settling entry */
}
Pool pool[2];
byte decision[3];
bool dead[3];                    /* the lease of the owner is no longer live, by the store's clock */
byte reading;                    /* reads under way; their grace time has not passed */
byte single;                     /* the version of the single writer's entry in pool 0 */

/* --- the truth */
byte truth[3];                   /* the first decision that was made */
bool told[3];                    /* the owner was told that it is committed */
bool seen_without, seen_before;  /* somebody saw transaction 1 without the single write; the other way round */
bool mortal;                     /* owners may die */
bool finished[3];                /* the owner has ended, dead or alive */

/* [Decisions.decide]: a create-only put; `answer` is the one that is there afterwards */
inline decide(t, wish, answer) {
    answer = decision[t];
    if
    :: answer == NONE || mutant == DECISION_OVERWRITES ->
        decision[t] = wish; answer = wish;
        if :: truth[t] == NONE -> truth[t] = wish :: else fi
    :: else ->
        if :: mutant == BELIEVE_OWN -> answer = wish :: else fi
    fi
}

/* [History.settle]: the entry that settles t in the newest state of a pool.  One that was not pending there is closed,
 * if aborted: its branch is removed [end_branch]. */
inline settle(p, t, answer) {
    /* no pool says what was not decided, and what is committed is in each of its pools */
    assert(answer == truth[t] && (answer == ABORT || pool[p].is[t] != NONE));
    if
    :: pool[p].is[t] == PENDING || (pool[p].is[t] == NONE && answer == ABORT) ->
        pool[p].version++;
        pool[p].is[t] = (answer == COMMIT -> DONE : UNDONE);
        pool[p].at[t] = pool[p].version
    :: else
    fi
}

/* What the owner's caller is told */
inline report(t, committed) {
    assert(committed == (truth[t] == COMMIT)); told[t] = committed
}

/* The owner [PoolsTransaction.commit]: an entry in each pool, in the order of the pools, the decision, the entries that
 * settle.  It waits for another transaction while it holds the pools before.  It may die between any two steps. */
proctype Owner(byte t; byte first) {
    byte n, p, answer, other = 3 - t;
    bool fails;
    n = 0;
    do
    :: n < 2 ->
        p = (n + first) % 2;
        if
        :: atomic { pool[p].is[other] != PENDING && pool[p].is[t] == NONE ->
                pool[p].version++; pool[p].is[t] = PENDING; n++ }
        :: atomic { pool[p].is[t] == UNDONE -> fails = true; break }
        :: atomic { pool[p].is[other] != PENDING -> fails = true; break }   /* the pool refuses */
        :: mortal -> goto dies
        fi
    :: n == 1 && mutant == DECIDE_EARLY -> break
    :: n == 2 -> break
    od;
    if
    :: mortal -> goto dies
    :: atomic { decide(t, (fails -> ABORT : COMMIT), answer) }
    fi;
    if :: mortal -> goto dies :: true fi;
    if
    :: atomic { mutant == ACK_AT_DECISION && answer == COMMIT -> report(t, true) }
    :: else
    fi;
    n = 0;
    do
    :: n < 2 ->
        p = (n + 1 + first) % 2;
        if
        :: atomic { pool[p].is[t] == PENDING -> settle(p, t, answer) }
        :: atomic { pool[p].is[t] == UNDONE -> answer = ABORT }   /* the decision was deleted, and made again */
        :: atomic { pool[p].is[t] == DONE || pool[p].is[t] == NONE }
        :: mortal -> goto dies
        fi;
        n++;
        if
        :: atomic { pool[p].is[t] == DONE -> report(t, true) }
        :: else
        fi
    :: else -> break
    od;
    atomic {
        if
        :: told[t]
        :: else -> report(t, false)
        fi
    };
dies:
    atomic { finished[t] = true; dead[t] = true }
}

/* A lease dies while its owner only stands still. */
proctype Clock(byte t) {
    if :: dead[t] = true :: true fi
}

/* [History._resolve]: anybody who meets what is pending: it finds out, makes the decision if the lease is dead, and settles. */
proctype Settler(byte t; byte first) {
    byte n, p, answer;
    do
    :: n < 2 ->
        p = (n + first) % 2;
        if
        :: atomic { pool[p].is[t] == PENDING -> answer = decision[t] };
            if
            :: answer == NONE && mutant == ABSENT_IS_ABORT && dead[t] -> answer = ABORT
            :: answer == NONE && mutant != ABSENT_IS_ABORT ->
                if
                :: atomic { dead[t] -> decide(t, ABORT, answer) }
                :: atomic { decision[t] != NONE -> answer = decision[t] }
                fi
            :: answer != NONE
            fi;
            atomic {
                if :: pool[p].is[t] == PENDING -> settle(p, t, answer) :: else fi;
                answer = NONE; n++
            }
        :: atomic { finished[t] && pool[p].is[t] != PENDING -> n++ }
        fi
    :: else -> break
    od
}

/* Upkeep [clean]: when each pool of t has settled it, or closed itself to it, the decision is deleted. */
proctype Upkeep(byte t) {
    byte p;
end: decision[t] != NONE;
    do
    :: p < 2 ->
        if
        :: atomic { pool[p].is[t] == NONE && decision[t] == ABORT ->
                if :: mutant != CLOSE_HELD_ONLY -> settle(p, t, ABORT) :: else fi; p++ }
        :: atomic { pool[p].is[t] == PENDING -> settle(p, t, decision[t]); p++ }
        :: atomic { pool[p].is[t] == DONE || pool[p].is[t] == UNDONE -> p++ }
        fi;
        if :: mutant == DELETE_EARLY -> break :: else fi
    :: else -> break
    od;
    atomic { reading == 0 || mutant == NO_GRACE -> decision[t] = NONE }
}

/* [undecided]: a writer of pool 0 alone whose draft conflicts with transaction 1: it does not go past what is undecided. */
proctype Single() {
    byte answer, version, before;
    do
    :: atomic { version = pool[0].version; before = pool[0].is[1] };
        if
        :: before == PENDING && mutant != PASS_UNDECIDED ->
            answer = decision[1];
            if
            :: answer == NONE ->                            /* it holds nothing while it waits */
                if
                :: atomic { dead[1] -> decide(1, ABORT, answer) }
                :: atomic { decision[1] != NONE -> answer = decision[1] }
                fi
            :: else
            fi
        :: else
        fi;
        if
        :: atomic { version == pool[0].version ->
                if :: answer != NONE -> settle(0, 1, answer) :: else fi;
                pool[0].version++; single = pool[0].version; break }
        :: atomic { version != pool[0].version -> answer = NONE }   /* it lost the race, and decides again */
        fi
    od
}

/* What a reader makes of transaction t: settled, or pending and decided. */
#define SHOWS(is, answer) (is == DONE || (is == PENDING && (answer == COMMIT || mutant == SHOW_PENDING)))

/* [History.load_open]: a reader of pool 0 alone, which never waits.  What it saw orders the transaction and the single write for good. */
proctype Reader() {
    byte answer, before;
    bool with, begun;
    atomic { begun = told[1]; reading++; before = pool[0].is[1]; with = (single != 0) };
    if
    :: before == PENDING && mutant != READ_NO_DECISION -> answer = decision[1]
    :: else
    fi;
    atomic {
        reading--;
        assert(!SHOWS(before, answer) || truth[1] == COMMIT);   /* never before the decision */
        assert(SHOWS(before, answer) || !begun);                /* an acknowledged one is seen */
        if
        :: SHOWS(before, answer) && !with -> seen_without = true
        :: !SHOWS(before, answer) && with -> seen_before = true
        :: else
        fi
    }
}

/* A pool as the reader of both sees it: its newest entry, and the decision if it is pending. */
inline look(p) {
    is[p] = pool[p].is[1]; answer[p] = NONE;
    if :: is[p] == PENDING -> answer[p] = decision[1] :: else fi
}

/* [states_at_one_moment]: a reader of both pools.  It reads again a pool that is behind what the other one shows, since
 * that one knows the version of its pending entry, and a pool that was undecided; until nothing changes. */
proctype Moment(byte first) {
    byte is[2], answer[2], p, rounds;
    bool begun, zero, one, same;
    atomic { begun = told[1]; reading++; p = first };
    look(p); p = 1 - first; look(p);
    do
    :: rounds < 3 && !same ->
        rounds++; same = true; zero = SHOWS(is[0], answer[0]); one = SHOWS(is[1], answer[1]);
        if
        :: (is[0] == NONE && one && mutant != NO_VECTOR) || (is[0] == PENDING && !zero && mutant != NOT_AGAIN) ->
            look(0); same = (SHOWS(is[0], answer[0]) == zero)
        :: else
        fi;
        if
        :: (is[1] == NONE && zero && mutant != NO_VECTOR) || (is[1] == PENDING && !one && mutant != NOT_AGAIN) ->
            look(1); same = same && (SHOWS(is[1], answer[1]) == one)
        :: else
        fi
    :: else -> break
    od;
    atomic {
        reading--; zero = SHOWS(is[0], answer[0]); one = SHOWS(is[1], answer[1]);
        /* all or none; none before the decision; all if it was acknowledged before */
        assert(zero == one && (!zero || truth[1] == COMMIT) && (zero || !begun))
    }
}

/* When nobody can go on: nothing is undecided, and the order in the journal is the one that was seen. */
proctype Last() {
    timeout;
    assert(pool[0].is[1] != PENDING && pool[1].is[1] != PENDING && pool[0].is[2] != PENDING && pool[1].is[2] != PENDING);
    assert((pool[0].is[1] == DONE) == (pool[1].is[1] == DONE) && (pool[0].is[2] == DONE) == (pool[1].is[2] == DONE));
    assert(single == 0 || pool[0].is[1] != DONE || (seen_without -> pool[0].at[1] < single : true) &&
        (seen_before -> single < pool[0].at[1] : true))
}

#define OWNERS 1
#define SINGLE 2
#define READER 4
#define MOMENT 8
#define UPKEEP 16

init {
    byte scene, side;
    c_code { now.mutant = atoi(getenv("MUTANT")); };
    c_code { Pinit->scene = atoi(getenv("SCENE")); };
    atomic {
        if :: side = 0 :: side = 1 fi;
        if :: mortal = false :: mortal = true fi;
        run Last();
        run Owner(1, 0); run Clock(1); run Settler(1, side);
        if :: scene & OWNERS -> run Owner(2, (mutant == WAIT_UNORDERED -> side : 0)); run Settler(2, 0) :: else fi;
        if :: scene & SINGLE -> run Single() :: else fi;
        if :: scene & READER -> run Reader() :: else fi;
        if :: scene & MOMENT -> run Moment(side) :: else fi;
        if :: scene & UPKEEP -> run Upkeep(1) :: else fi
    }
}
