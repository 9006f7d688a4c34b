/* Group commit: writers store requests, the writer of the next entry commits those that it sees, each once.
 *
 * The journal is one list to which a writer appends if it has folded all of it; journal.pml is the model of how.  Two
 * writers have one draft each.  A combiner has drafts that matter to nobody, and collects requests.  In the scene with
 * sources, the writers load the same version of one source file, and the combiner's own drafts load that or a later one.
 * With `LOOSE`, what refused a draft may go again: the combiner's drafts give the source file back; in the scene without
 * sources, they delete the branch of the writers, and restore it.
 * The names in brackets are those of lake_core/history/group_commit, and of journal/recent.
 */
byte mutant;                     /* which rule is broken; 0: none */
#define COMMIT_KNOWN     1       /* a combiner does not look for a request among the recent ids */
#define COMMIT_EXPIRED   2       /* a combiner commits a request that the recent ids do not reach */
#define FORGET_OWN       3       /* a writer does not look for its own draft after a lost race */
#define GIVE_UP_SURELY   4       /* a writer that gives up reports that a stored request is not committed */
#define COMMIT_REFUSED   5       /* a combiner commits a load whose file was ingested in another version */
#define SINCE_NOW        6       /* a second attempt counts from its own begin */
#define NO_SEARCH        7       /* a writer that the recent ids do not reach does not search the entries */
#define COMMIT_GIVEN     8       /* a combiner commits a load whose file was given back since the request */
#define COMMIT_RESTORED  9       /* work that began before its branch was restored is committed */

#define VERSIONS 5               /* 3 in the scene with sources */
#define ROOM (sources -> 3 : VERSIONS)
#define GENERATION 2             /* JournalLimits.generation_versions */
#define WRITERS 2
#define NEVER 255
#define BIT(id) (1 << ((id) - 1))
#define GEN(version) ((version) / GENERATION)
#define FITS(me, version) (!gone[version] && \
    (begun[me] >= restored[version] || mutant == COMMIT_RESTORED))      /* rebase: the branch is there, and the same */
#define REACHES(version, newest) (GEN(version) + 1 >= GEN(newest))      /* Recent.reaches */

byte entry[VERSIONS + 2];        /* the drafts in an entry */
byte source[VERSIONS + 2];       /* the version of the source file that is ingested after an entry; 0: none */
byte changed[VERSIONS + 2];      /* the newest entry that ingested the source file, or gave it back: source_changed */
bool gone[VERSIONS + 2];         /* whether the branch of the writers is deleted after an entry */
byte restored[VERSIONS + 2];     /* the newest entry that restored it, 0 if none: Fork.restored */
byte last;
bool sources;                    /* the drafts load a source file */
bool loose;                      /* the file is given back, or the branch deleted and restored */
bool stored[WRITERS + 1];        /* the request of a writer is there */
byte since[WRITERS + 1];         /* the version that it names */
byte file[WRITERS + 1];          /* the version of the source file that a draft loads; 0: none */
byte begun[WRITERS + 1];         /* the version on which a writer began: Draft.read_version */

/* --- the truth */
byte all;                        /* every draft in the history */
byte denied;                     /* drafts whose writers were told that they are not committed */

/* The recent ids at a version */
inline know(version) {
    d_step {
        known = 0; v = 1;
        do
        :: v <= version -> known = known | (REACHES(v, version) -> entry[v] : 0); v++
        :: else -> break
        od;
        v = 0
    }
}

/* Attempt._collect_requests: what fits after `first` in the entry after a version; `taken` is what the entry holds */
inline collect(version, me, loads) {
    d_step {
        taken = (me -> BIT(me) : 0); ingested = (loads -> loads : source[version]);
        queue = stored[1] + 2 * stored[2];
        v = 1;
        do
        :: v <= WRITERS ->
            if
            :: v != me && (queue & BIT(v)) &&
                    (!(known & BIT(v)) || mutant == COMMIT_KNOWN) &&
                    (GEN(version + 1) <= GEN(since[v]) + 1 || mutant == COMMIT_EXPIRED) &&
                    FITS(v, version) &&
                    (file[v] == 0 || ingested == 0 || (mutant == COMMIT_REFUSED && ingested != file[v])) &&
                    (file[v] == 0 || changed[version] <= since[v] || mutant == COMMIT_GIVEN) ->   /* may_have_been_refused */
                taken = taken | BIT(v); ingested = (file[v] -> file[v] : ingested)
            :: else
            fi;
            v++
        :: else -> break
        od;
        v = 0; queue = 0; known = 0
    }
}

/* Journal.append puts the entry if nobody else has put one since */
inline put(version) {
    assert(!(all & taken));                                 /* each draft once */
    assert(!(denied & taken));                              /* a report of no commit is final */
    last++; entry[last] = taken; source[last] = ingested; all = all | taken;
    changed[last] = (loose && source[last] != source[last - 1] -> last : changed[last - 1]);
    gone[last] = gone[last - 1]; restored[last] = restored[last - 1]
}

/* The writer's caller is told that the draft is not committed. */
inline deny(me) {
    assert(!(all & BIT(me))); denied = denied | BIT(me)
}

/* Attempt: proposes its draft until the outcome is known; or gives up, and begins once more */
proctype Writer(byte me) {
    byte version, possible = NEVER, queue, known, taken, ingested, v, attempts;
    bool found;
again:
    atomic { version = last; begun[me] = (attempts || sources || !loose -> begun[me] : last); attempts++; if :: mutant == SINCE_NOW && possible != NEVER -> possible = last :: else fi };
    do
    :: atomic {                                             /* Attempt.propose */
            know(version); found = (known & BIT(me)) && mutant != FORGET_OWN;
            if
            :: !found && possible != NEVER && !REACHES(possible + 1, version) && mutant != NO_SEARCH ->
                v = possible + 1;                           /* Attempt._search_entries */
                do
                :: v <= version -> found = found || (entry[v] & BIT(me)); v++
                :: else -> break
                od;
                v = 0
            :: else
            fi;
            if
            :: found -> stored[me] = false; goto ends
            :: !found && version == last && ((file[me] && source[version] == file[me]) || !FITS(me, version)) ->
                deny(me); goto refused
            :: else
            fi;
            if
            :: possible == NEVER || !stored[me] ->          /* Attempt._post */
                possible = (possible == NEVER -> version : possible);
                since[me] = possible; stored[me] = true
            :: true
            fi;
            collect(version, me, file[me])
       };
       if
       :: atomic { version == last && last < ROOM && FITS(me, version) &&
                    !(file[me] && source[version] == file[me]) -> put(version);
            if
            :: stored[me] = false; goto ends                /* Event.COMMITTED */
            :: possible = version; goto unknown             /* Event.ANSWER_LOST */
            fi }
       :: atomic { version < last -> version++ }            /* a lost race: fold the entry that won */
       :: atomic { last == ROOM -> goto unknown }
       :: atomic { possible == NEVER || mutant == GIVE_UP_SURELY ->      /* Event.GAVE_UP, nothing is in doubt */
            deny(me); goto ends }
       :: goto unknown                                      /* Event.GAVE_UP; or it dies */
       fi;
       taken = 0; ingested = 0
    od;
refused:
    stored[me] = false;                                     /* a combiner may have read the request before */
    goto ends;
unknown:
    taken = 0; ingested = 0;
    if
    :: attempts < 2 && possible != NEVER && !file[me] -> goto again
    :: goto ends
    fi;
ends:
    skip
}

/* A writer whose own drafts matter to nobody here; it has read the requests at any time before it puts its entry. */
proctype Combiner() {
    byte version, loads, queue, known, taken, ingested, v;
    do
    :: atomic { last < ROOM -> version = last;
            if :: sources -> loads = 1 :: sources -> loads = 2 :: true fi;
            if :: loads == source[version] -> loads = 0 :: else fi;
            know(version); collect(version, 0, loads); loads = 0 };
       atomic {
            if :: version == last && last < ROOM -> put(version) :: else fi;
            version = 0; taken = 0; ingested = 0
       }
    :: atomic { loose && last < ROOM && (!sources || source[last]) -> version = last; put(version);
            if
            :: sources -> source[last] = 0; changed[last] = last            /* Release: a revert of a merge */
            :: !sources && gone[last - 1] -> gone[last] = false; restored[last] = last
            :: !sources && !gone[last - 1] -> gone[last] = true
            fi;
            version = 0 }
    :: last == ROOM -> break
    od
}

init {
    byte writers;
    c_code { now.mutant = atoi(getenv("MUTANT")); };
    c_code {
        Pinit->writers = atoi(getenv("WRITERS"));
        now.sources = atoi(getenv("SOURCES"));
        now.loose = atoi(getenv("LOOSE"));
    };
    atomic {
        if :: sources -> file[1] = 1; file[2] = 1 :: else fi;
        run Combiner();
        do :: writers > 0 -> run Writer(writers); writers-- :: else -> break od
    }
}
