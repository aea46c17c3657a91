package faults

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
)

// An ending is one of the ways a call can end.
type ending struct {
	name   string
	causes []string // causes in the records of its calls
	end    func(p *pair)
}

// endings lists all ways to end a call. If the server takes long to notice that a call has ended,
// end does not wait for it.
var endings = []ending{
	{"the caller hangs up", []string{"NORMAL_CLEARING"}, func(p *pair) {
		alice, bob := p.talk()
		alice.Hangup()
		p.want(bob, "NORMAL_CLEARING")
	}},
	{"the callee hangs up", []string{"NORMAL_CLEARING"}, func(p *pair) {
		alice, bob := p.talk()
		bob.Hangup()
		p.want(alice, "NORMAL_CLEARING")
	}},
	{"a member ends it for all", []string{"NORMAL_CLEARING"}, func(p *pair) {
		alice, bob := p.talk()
		bob.Command("call.end", map[string]any{})
		p.want(alice, "NORMAL_CLEARING")
	}},
	{"the callee rejects it", []string{"USER_BUSY"}, func(p *pair) {
		alice := p.alice.Dial(p.to)
		p.bob.WaitRing().Reject()
		p.want(alice, "USER_BUSY")
	}},
	{"the caller gives up", []string{"NORMAL_CLEARING"}, func(p *pair) {
		alice := p.alice.Dial(p.to)
		bob := p.bob.WaitRing()
		alice.Hangup()
		p.want(bob, "ORIGINATOR_CANCEL")
	}},
	{"too many calls of a caller", []string{"USER_BUSY", "NORMAL_CLEARING", "NORMAL_CLEARING"}, func(p *pair) {
		ringing := []*phone.Call{p.alice.Dial(p.to), p.alice.Dial(p.to)}
		for range ringing {
			p.bob.WaitRing()
		}
		p.want(p.alice.Dial(p.to), "USER_BUSY")
		for _, c := range ringing {
			c.Hangup()
		}
	}},
	{"nobody answers", []string{"NO_ANSWER"}, func(p *pair) {
		p.alice.Dial(p.to)
		p.bob.WaitRing()
	}},
	{"another device answers", []string{"NORMAL_CLEARING"}, func(p *pair) {
		other := p.connect(p.callee).Online()
		alice := p.alice.Dial(p.to)
		late := other.WaitRing()
		p.bob.WaitRing().Answer()
		p.want(late, "LOSE_RACE")
		alice.Hangup()
	}},
	{"the callee is offline", []string{"USER_NOT_REGISTERED"}, func(p *pair) {
		p.bob.Offline()
		p.want(p.alice.Dial(p.to), "USER_NOT_REGISTERED")
	}},
	{"there is no such address", []string{"UNALLOCATED_NUMBER"}, func(p *pair) {
		p.want(p.alice.Dial("/private/nobody"), "UNALLOCATED_NUMBER")
	}},
	{"a guest may not call there", []string{"CALL_REJECTED"}, func(p *pair) {
		guest := p.connect(p.NewGuest(p.t, p.Address(p.t, p.caller.SubscriberID)))
		p.want(guest.Dial(p.to), "CALL_REJECTED")
	}},
	{"an echo", []string{"NORMAL_CLEARING"}, func(p *pair) {
		alice := p.alice.Dial("/public/echo")
		alice.WaitAnswered()
		alice.Hangup()
	}},
	{"the offer cannot be used", nil, func(p *pair) {
		if code := p.alice.TryDial(p.to, "v=0\r\nm=audio 9 x 0\r\n"); code != "400" {
			p.t.Errorf("a bad offer returned the code %s, want 400", code)
		}
	}},
	{"a backend hangs up", []string{"MANAGER_REQUEST"}, func(p *pair) {
		alice, bob := p.talk()
		p.Post(p.t, p.LaML("/Calls/"+alice.ID), p.Basic(),
			harness.Form(url.Values{"Status": {"completed"}})).Want(p.t, 200)
		p.want(alice, "MANAGER_REQUEST")
		p.want(bob, "MANAGER_REQUEST")
	}},
	{"the caller's tokens are revoked", []string{"TOKEN_REVOKED"}, func(p *pair) {
		_, bob := p.talk()
		p.revoke(p.caller)
		p.want(bob, "TOKEN_REVOKED")
	}},
	{"the callee's tokens are revoked", []string{"TOKEN_REVOKED"}, func(p *pair) {
		alice, _ := p.talk()
		p.revoke(p.callee)
		p.want(alice, "TOKEN_REVOKED")
	}},
	{"the caller's socket breaks", []string{"RECOVERY_ON_TIMER_EXPIRE"}, func(p *pair) {
		p.talk()
		p.alice.Drop()
	}},
	{"the callee's socket breaks", []string{"RECOVERY_ON_TIMER_EXPIRE"}, func(p *pair) {
		p.talk()
		p.bob.Drop()
	}},
	{"the caller's socket breaks while it rings", []string{"NO_ANSWER"}, func(p *pair) {
		p.alice.Dial(p.to)
		p.bob.WaitRing()
		p.alice.Drop()
	}},
	{"the caller comes back and hangs up", []string{"NORMAL_CLEARING"}, func(p *pair) {
		alice, bob := p.talk()
		p.alice.Drop()
		again := phone.Connect(p.t, p.Server, p.caller.Token, p.alice.Protocol).Silent()
		again.Take(p.alice)
		again.Attach(alice).Hangup()
		p.want(bob, "NORMAL_CLEARING")
	}},
	{"after talking", []string{"NORMAL_CLEARING"}, func(p *pair) {
		alice, bob := phone.Talk(p.loud())
		phone.HearBoth(alice, bob)
		alice.Hangup()
		p.want(bob, "NORMAL_CLEARING")
	}},
	{"after talking, while the call is recorded", []string{"NORMAL_CLEARING"}, func(p *pair) {
		alice, bob := phone.Talk(p.loud())
		p.Post(p.t, p.LaML("/Calls/"+alice.ID+"/Recordings"), p.Basic(), harness.Form(url.Values{})).Want(p.t, 201)
		phone.HearBoth(alice, bob)
		bob.Hangup()
		p.want(alice, "NORMAL_CLEARING")
	}},
	{"both sides vanish while they talk", []string{"RECOVERY_ON_TIMER_EXPIRE"}, func(p *pair) {
		alice, bob := phone.Talk(p.loud())
		phone.HearBoth(alice, bob)
		p.alice.Drop()
		p.bob.Drop()
		alice.Close()
		bob.Close()
	}},
}

// expiry limits how long a server may take to end the calls of clients that have vanished.
const expiry = 2 * time.Minute

// keptTables lists the tables that keep rows about calls and their parties after the calls have
// ended.
var keptTables = []string{"addresses", "audit", "audit_heads", "calls", "daily_counts", "families",
	"recording_subscribers", "recording_words", "recordings", "revocations", "sequences", "subscribers"}

// manyCounts counts the days on which a project has more than a few daily counts. A project must
// have no more of them when it makes more calls.
const manyCounts = `SELECT count(*) FROM (SELECT 1 FROM daily_counts GROUP BY project_id, day HAVING count(*) > 8)`

// TestCallsLeaveNothing makes CALLS calls, or a few hundred by default, and ends them in every way.
// Each call leaves a record with its cause. No goroutines, sockets, files or other rows remain. The
// heap grows only by about 1 KiB for each token of the parties. The server remembers up to 4,096
// tokens.
func TestCallsLeaveNothing(t *testing.T) {
	harness.OneBackend(t)
	temporary := t.TempDir()
	// Unanswered calls end before the server notices, after 15 seconds, that their clients are gone.
	s := harness.StartConfig(t, harness.Config{Env: []string{"TMPDIR=" + temporary, "SELVAGE_CALLS__RING=12s"}})
	var projects []*harness.Project // several, because each may have at most a thousand calls at a time
	for range 8 {
		projects = append(projects, s.NewProject(t))
		projects[len(projects)-1].NewSAT(t, "somebody")
	}
	db, sessions := openRows(t, s, "selvage.db"), openRows(t, s, "sessions.db")
	before, rowsBefore := residueOf(t, s, temporary), countRows(t, db)
	const others = `SELECT count(*) FROM selvage_sessions WHERE kind <> 'presence'` // presence expires within an hour
	entries := count(t, sessions, others)

	began := time.Now()
	want := make(map[string]int)
	t.Run("end", func(t *testing.T) {
		for round := 0; len(want) == 0 || total(want) < minCalls(t); round++ {
			for _, e := range endings {
				for _, cause := range e.causes {
					want[cause]++
				}
				t.Run(e.name, func(t *testing.T) {
					t.Parallel()
					e.end(newPair(t, projects[round%len(projects)]))
				})
			}
		}
	})
	t.Logf("%d calls in %v", total(want), time.Since(began))

	const running = `SELECT (SELECT count(*) FROM calls WHERE state <> 'ended') +
		(SELECT count(*) FROM recordings WHERE waits <> 0)`
	harness.Eventually(t, expiry, "calls and recordings to end", func() error {
		if n := count(t, db, running); n > 0 {
			return fmt.Errorf("%d calls and recordings have not ended", n)
		}
		return nil
	})
	var after residue
	harness.Eventually(t, expiry, "the resources of the calls to be released", func() error {
		after = residueOf(t, s, temporary)
		return after.since(before)
	})
	if got := countCauses(t, db); !maps.Equal(got, want) {
		t.Errorf("the records have the causes %v, want %v", got, want)
	}

	if got := after.ended; !maps.Equal(got, want) {
		t.Errorf("the metrics count the causes %v, want %v", got, want)
	}
	for _, name := range grown(rowsBefore, countRows(t, db)) {
		if !slices.Contains(keptTables, name) {
			t.Errorf("the table %s has grown", name)
		}
	}

	if n := count(t, db, manyCounts); n > 0 {
		t.Errorf("%d projects have too many daily counts", n)
	}
	if n := count(t, sessions, others); n > entries {
		t.Errorf("the session store has %d entries, want %d as before", n, entries)
	}
	if most := before.heap + 4<<20 + total(want)*2<<10; after.heap > most {
		t.Errorf("the heap has %d KiB, want at most %d", after.heap>>10, most>>10)
	}
	t.Logf("after the calls: %v; before: %v", after, before)
}

// minCalls returns the minimum number of calls to make.
func minCalls(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CALLS")
	if text == "" {
		return 200
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("CALLS: %v", err)
	}
	return n
}

func total(counts map[string]int) (n int) {
	for _, each := range counts {
		n += each
	}
	return n
}

// A pair is two new subscribers, each with a phone, for one of the endings.
type pair struct {
	*harness.Project
	t              *testing.T
	caller, callee harness.SAT
	to             string // address of the callee
	alice, bob     *phone.Phone
}

// pairs counts the pairs. The names of a pair's subscribers contain its number.
var pairs atomic.Int64

func newPair(t *testing.T, in *harness.Project) *pair {
	t.Helper()
	n := pairs.Add(1)
	name := fmt.Sprint("bob", n)
	p := &pair{
		Project: in,
		t:       t,
		to:      "/private/" + name,
		caller:  in.NewSAT(t, fmt.Sprint("alice", n)),
		callee:  in.NewSAT(t, name),
	}
	p.alice = p.connect(p.caller)
	p.bob = p.connect(p.callee).Online()
	return p
}

// connect connects another phone of a subscriber. The phone sends no audio.
func (p *pair) connect(as harness.SAT) *phone.Phone {
	p.t.Helper()
	made := phone.Connect(p.t, p.Server, as.Token, "").Silent()
	p.t.Cleanup(made.Leave)
	return made
}

// loud makes both phones send audio, and returns the arguments of a call between them.
func (p *pair) loud() (from, at *phone.Phone, to string) {
	return p.alice.Loud().G711(), p.bob.Loud().G711(), p.to
}

// talk connects the two subscribers in a call.
func (p *pair) talk() (alice, bob *phone.Call) {
	p.t.Helper()
	return phone.Talk(p.alice, p.bob, p.to)
}

// want fails the test unless the call ends with the given cause.
func (p *pair) want(c *phone.Call, cause string) {
	p.t.Helper()
	if got := c.WaitEnded(); got != cause {
		p.t.Errorf("the call ended with %s, want %s", got, cause)
	}
}

// revoke revokes the tokens of a subscriber.
func (p *pair) revoke(who harness.SAT) {
	p.t.Helper()
	p.Do(p.t, "DELETE", "/api/fabric/resources/subscribers/"+who.SubscriberID+"/tokens", p.Basic()).Want(p.t, 204)
}
