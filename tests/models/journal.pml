/* The journal: entries put only if missing, answers that are lost, purges with fences and gates, stale readers.
 *
 * Two writers commit one change each, a purge runs as often as there are purgers, a reader opens the journal and looks
 * for news.  Each request to the store is one step; any process may stand still between two steps, for ever too.
 * The words in brackets name the functions of lake_core/journal that an inline or a step stands for.
 *
 * `history` is what the journal really holds, which no process may look at; the assertions compare with it.
 */
#define VERSIONS 3
#define WRITERS 2

byte mutant;                     /* which rule is broken; 0: none */
#define ACK_WITHOUT_FENCE   1    /* a writer acknowledges without a look at fence or gate */
#define READ_WITHOUT_FENCE  2    /* a reader does not look at the fence after reading */
#define FENCE_AFTER_DELETE  3    /* a purge puts its fence last */
#define GATE_AFTER_DELETE   4    /* a purge makes its gate last */
#define GATE_BEFORE_FENCE   5    /* a purge makes its gate before its fence */
#define NO_CHECKPOINT       6    /* a purge writes its checkpoint last */
#define NEXT_IF_SILENT      7    /* a writer whose put is not answered tries the next version */
#define EXISTS_IS_OURS      8    /* a writer takes "exists" for its own entry */
#define FORGET_OUTCOME      9    /* a writer whose version is purged decides again without the recent ids */
#define COUNT_AFTER_LIST   10    /* gates are counted after the journal was read */
#define GATE_READ_FIRST    11    /* a look for news reads the next gate before the next entries */
#define DELETE_ABOVE       12    /* a purge deletes the entry above its fence, too */
#define KEEP_STATE         13    /* a writer that lost a race folds on without a look at the fence */

/* --- the store */
byte entry[VERSIONS + 1];        /* who wrote the entry of a version; 0: not there */
byte checkpoint[VERSIONS + 1];   /* 1 + the ids in the state; 0: not there */
byte fence;                      /* the newest one */
byte gates;
#define SPENT 255
byte late[WRITERS + 1];          /* a put under way that nobody waits for any more: its version */

/* --- the truth */
byte history[VERSIONS + 1];
byte last;

#define BIT(id) (1 << ((id) - 1))

/* Store.create: a put that acts only if the name is free */
inline create(version, id, created) {
    created = (entry[version] == 0);
    if
    :: created ->
        entry[version] = id;
        if
        :: version == last + 1 ->
            assert(history[1] != id && history[2] != id && history[3] != id);  /* exactly once */
            history[version] = id; last = version
        :: else
        fi
    :: else
    fi
}

/* Entries are contiguous above the newest fence, and a sound checkpoint is at or above the fence. */
inline check_store() {
    i = fence + 1;
    do
    :: i <= last -> assert(entry[i] == history[i]); i++
    :: else -> break
    od;
    i = fence;
    do
    :: fence && i <= VERSIONS && checkpoint[i] == 0 -> i++
    :: else -> break
    od;
    assert(i <= VERSIONS);
    i = 0
}

/* The state is a fold of the history, and no older than the moment at which the load began. */
inline check_state(begun) {
    i = 1; c = 0;
    do
    :: i <= version -> c = c | BIT(history[i]); i++
    :: else -> break
    od;
    assert(version >= begun && version <= last && ids == c);
    i = 0; c = 0
}

/* JournalReader._walk: the next entries, one request each, up to the first that is missing */
inline walk() {
    do
    :: atomic { version < VERSIONS && entry[version + 1] != 0 ->
            version++; ids = ids | BIT(entry[version]) }
    :: atomic { version == VERSIONS || entry[version + 1] == 0 -> break }
    od
}

/* JournalReader._start, _walk, _is_behind, with _count_gates: from the newest checkpoint, then the fence */
inline load() {
    do
    :: d_step { known = gates; version = 0; ids = 0; floor = 0; }
       d_step {
            i = VERSIONS;
            do
            :: i > 0 && (checkpoint[i] == 0 || i < fence) -> i--
            :: else -> break
            od;
            floor = i; i = 0
       }
       d_step { if :: floor && checkpoint[floor] -> version = floor; ids = checkpoint[floor] - 1 :: else fi }
       if
       :: floor && version == 0 -> known = 0; floor = 0        /* CheckpointGone: again */
       :: else ->
            walk();
            if
            :: atomic { fence <= floor || mutant == READ_WITHOUT_FENCE -> break }
            :: else
            fi
       fi
    od;
    if :: atomic { mutant == COUNT_AFTER_LIST -> known = gates } :: else fi
}

/* JournalReader._follow: the entries after the state in memory, then the fence */
inline follow() {
    walk();
    if
    :: fence <= floor || mutant == KEEP_STATE
    :: else -> load()
    fi
}

/* Journal.append, put_entry, JournalReader.is_purged; `gated`: the store lists from a name, so gates are used */
proctype Writer(byte me; bool gated) {
    byte version, ids, known, floor, i, c;
    bool created;
    load();
    do
    :: atomic { ids & BIT(me) ->                        /* Recent.version_of: it is in the history */
            assert(history[1] == me || history[2] == me || history[3] == me); break }
    :: atomic { !(ids & BIT(me)) && version == VERSIONS -> break }
    :: atomic { !(ids & BIT(me)) && version < VERSIONS -> c = 0 };
        do                                              /* put_entry: until the store says whose entry is there */
        :: atomic { create(version + 1, me, created);
                if :: created -> c = 1 :: else fi };
            if
            :: created || mutant == EXISTS_IS_OURS -> c = 1; break
            :: else ->
                if
                :: atomic { entry[version + 1] == me -> c = 1; break }
                :: atomic { entry[version + 1] == 0 -> c = 3; break }
                :: atomic { entry[version + 1] != 0 && entry[version + 1] != me -> c = 2; break }
                fi
            fi
        :: atomic { create(version + 1, me, created); created = false };   /* the answer is lost */
            if
            :: atomic { mutant == NEXT_IF_SILENT -> c = 2; break }
            :: mutant != NEXT_IF_SILENT && (entry[version + 1] == 0 || entry[version + 1] == me)
            :: atomic { mutant != NEXT_IF_SILENT && entry[version + 1] != 0 && entry[version + 1] != me ->
                    c = 2; break }
            fi
        :: atomic { me == 1 && late[me] == 0 -> late[me] = version + 1 }              /* it is still under way */
        od;
        if
        :: c == 1 ->                                    /* ours: is it in the history? */
            if
            :: atomic { mutant == ACK_WITHOUT_FENCE || (gated -> gates == known : fence <= version) ->
                    version++; ids = ids | BIT(me) }
            :: else ->
                if
                :: atomic { fence <= version -> version++; ids = ids | BIT(me) }
                :: else ->
                    load();
                    if :: mutant == FORGET_OUTCOME -> ids = ids & (255 - BIT(me)) :: else fi
                fi
            fi
        :: c == 2 ->                                    /* another one won */
            if
            :: atomic { mutant == NEXT_IF_SILENT -> version++ }
            :: else -> follow()
            fi
        :: c == 3 -> load()                             /* it was there, and is purged */
        fi;
        c = 0
    od
}

/* A put whose sender has given up arrives. */
proctype Late(byte who) {
    bool created;
end: do
    :: atomic { late[who] && late[who] != SPENT -> create(late[who], who, created); late[who] = SPENT; created = false }
    od
}

/* JournalReader._look: the next entries and then the next gate; if it is there, count and follow from memory */
inline look() {
    if
    :: gated ->
        gate = (mutant == GATE_READ_FIRST -> gates : 0);
        walk();
        if
        :: atomic { known == (mutant == GATE_READ_FIRST -> gate : gates) ->
                assert(floor == 0 || checkpoint[floor] || mutant == GATE_READ_FIRST) }   /* what the state rests on */
        :: else -> known = gates; follow()
        fi;
        gate = 0
    :: !gated -> follow()
    fi
}

/* JournalReader.load: an open, and two looks for news */
proctype Reader(bool gated) {
    byte version, ids, known, floor, i, c, begun, gate;
    begun = last;
    load();
    d_step { check_state(begun); begun = last };
    look();
    d_step { check_state(begun); begun = last };
    look();
    d_step { check_state(begun) }
}

/* purge.put_gate: the gate after those that are there, or the same one by another purge */
inline put_gate() {
    atomic { c = gates };
    d_step { if :: gates == c -> gates = c + 1 :: else fi; c = 0 }
}

/* purge.write_newest, purge.purge, purge._delete_below */
proctype Purger() {
    byte version, ids, known, floor, i, c, at;
    load();
    if
    :: version ->
        if :: version > 1 && checkpoint[1] -> version = 1 :: true fi;         /* purge.choose: up to a version */
        if :: mutant != NO_CHECKPOINT && checkpoint[version] == 0 -> d_step { checkpoint[version] = ids + 1 } :: else fi;
        if :: mutant == GATE_BEFORE_FENCE -> put_gate() :: else fi;
        if
        :: mutant != FENCE_AFTER_DELETE ->
            d_step { if :: fence < version -> fence = version :: else fi; check_store() }
        :: else
        fi;
        if :: mutant != GATE_AFTER_DELETE && mutant != GATE_BEFORE_FENCE -> put_gate() :: else fi;
        at = 1;
        do
        :: at <= version + (mutant == DELETE_ABOVE) && at <= VERSIONS -> d_step { entry[at] = 0; at++; check_store() }
        :: else -> break
        od;
        at = 1;
        d_step {
            do
            :: at < version -> checkpoint[at] = 0; at++
            :: else -> break
            od;
            at = 0; check_store()
        };
        if :: mutant == GATE_AFTER_DELETE -> put_gate() :: else fi;
        if :: mutant == FENCE_AFTER_DELETE -> fence = (fence < version -> version : fence) :: else fi;
        if :: mutant == NO_CHECKPOINT -> checkpoint[version] = ids + 1 :: else fi
    :: else
    fi
}

init {
    byte writers, readers, purgers, begun;
    bool gated;
    c_code { now.mutant = atoi(getenv("MUTANT")); };
    c_code {
        Pinit->writers = atoi(getenv("WRITERS"));
        Pinit->readers = atoi(getenv("READERS"));
        Pinit->purgers = atoi(getenv("PURGERS"));
        Pinit->begun = atoi(getenv("BEGUN"));
    };
    atomic {
        if :: gated = true :: gated = false fi;
        if
        :: begun >= 1 -> entry[1] = 3; history[1] = 3; last = 1
        :: else
        fi;
        if
        :: begun == 2 -> checkpoint[1] = 1 + BIT(3); entry[2] = 4; history[2] = 4; last = 2
        :: else
        fi;
        do :: writers > 0 -> run Writer(writers, gated); writers-- :: else -> break od;
        do :: readers > 0 -> run Reader(gated); readers-- :: else -> break od;
        do :: purgers > 0 -> run Purger(); purgers-- :: else -> break od;
        run Late(1)
    }
}
