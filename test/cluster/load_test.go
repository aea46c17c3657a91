package cluster

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/history"
)

const (
	// often is the interval between two operations of a client. Without a pause, the clients would
	// use all CPU time during an outage, and would find no more faults.
	often = 80 * time.Millisecond

	// patience is how long a cluster may take to recover on a busy machine.
	patience = time.Minute

	scope = "openid offline_access"
)

// A kind is a kind of operations in a load.
type kind int

const (
	logins kind = iota
	changes
	uploads
	downloads
	kinds // number of kinds
)

// A load is a group of clients that sign in, refresh, write and revoke while parts of a cluster
// fail. It records every response.
type load struct {
	t       *testing.T
	front   *harness.Nodes
	client  *harness.Client
	cookies harness.Option
	stop    chan struct{}
	work    sync.WaitGroup
	done    [kinds]atomic.Int64 // operations that succeeded
	lost    [kinds]atomic.Int64 // operations that got no response or a 503

	mu          sync.Mutex
	logins      []*login
	subscribers []string                     // IDs of acknowledged subscribers
	recordings  map[string][sha256.Size]byte // acknowledged recordings, by Sid
	revoked     []string                     // access tokens whose revocation was acknowledged
	faults      []string                     // responses that are never acceptable
}

// A login is an authorization code, with the history of its use and of its refresh tokens.
type login struct {
	flow    *harness.Flow
	code    string
	newest  string // last refresh token that a client received; may be ""
	history *history.History
}

// newLoad starts clients, and waits until their operations succeed.
func newLoad(t *testing.T, n *harness.Nodes) *load {
	t.Helper()
	p := n.NewProject(t)
	l := &load{t: t, front: n, stop: make(chan struct{}), recordings: make(map[string][sha256.Size]byte)}
	l.client = p.NewClient(t, "web", "--first-party", "--id-token-alg", "ES256", "--access-token", "fabric")
	_, b := l.client.SignIn(t, p.NewSubscriber(t), scope)
	l.cookies = b.Cookies()

	for i := range 2 {
		l.repeat(func(n int) { l.logIn(n%2 == i) })
	}
	l.repeat(l.change)
	l.repeat(l.upload)
	l.repeat(l.read)
	l.waitSuccess(logins, changes, uploads, downloads)
	return l
}

// repeat calls do with a serial number until the load ends.
func (l *load) repeat(do func(n int)) {
	l.work.Go(func() {
		next := time.NewTicker(often)
		defer next.Stop()
		for n := 0; ; n++ {
			do(n)
			select {
			case <-l.stop:
				return
			case <-next.C:
			}
		}
	})
}

// waitSuccess waits until more operations of each of these kinds have succeeded.
func (l *load) waitSuccess(all ...kind) {
	l.t.Helper()
	for _, k := range all {
		const some = 4
		want := l.done[k].Load() + some
		harness.Eventually(l.t, patience, fmt.Sprintf("operations of kind %d to succeed", k), func() error {
			if n := l.done[k].Load(); n < want {
				return fmt.Errorf("only %d of %d have succeeded", n+some-want, some)
			}
			return nil
		})
	}
}

// waitFailure waits until an operation of this kind fails.
func (l *load) waitFailure(k kind) {
	l.t.Helper()
	before := l.lost[k].Load()
	harness.Eventually(l.t, 2*patience, fmt.Sprintf("an operation of kind %d to fail", k), func() error {
		if l.lost[k].Load() == before {
			return errors.New("none has failed")
		}
		return nil
	})
}

// logIn gets a code, redeems it, and refreshes the tokens three times. If twice is set, two clients
// redeem the code at the same time. Each refresh token is always used by two clients at the same
// time.
func (l *load) logIn(twice bool) {
	f := l.client.NewFlow(scope)
	code, err := f.QuickCode(l.cookies)
	if err != nil {
		return // no login was acknowledged
	}

	it := &login{flow: f, code: code, history: history.New()}
	l.mu.Lock()
	l.logins = append(l.logins, it)
	l.mu.Unlock()

	clients := 1
	if twice {
		clients = 2
	}
	redeem := func() (harness.Tokens, error) { return f.QuickRedeem(code) }
	newest := l.ask(it, clients, history.Use{}, redeem)
	for range 3 {
		if newest == history.Refused || newest == history.Unknown {
			return
		}
		it.newest = newest
		refresh := func() (harness.Tokens, error) { return l.client.QuickRefresh(it.newest) }
		newest = l.ask(it, 2, history.Use{Token: it.newest}, refresh)
	}
}

// ask makes the same request for several clients concurrently. It returns a token that one of them
// received. If none did, it returns history.Refused or history.Unknown.
func (l *load) ask(it *login, clients int, in history.Use, do func() (harness.Tokens, error)) string {
	outputs := make([]string, clients)
	harness.AtOnce(clients, func(i int) { outputs[i] = it.history.Ask(i, in, do) })
	answer := outputs[0]
	for _, out := range outputs {
		if out != history.Refused && out != history.Unknown {
			l.done[logins].Add(1)
			answer = out
		}
	}
	return answer
}

// upload stores a recording.
func (l *load) upload(n int) {
	p := l.client.Project
	var made struct{ Sid string }
	wav := harness.Tone(800+n, 20)
	if l.acknowledged(uploads, "POST", p.LaML("/Recordings"), &made, 201, p.Basic(), harness.Body("audio/wav", wav)) {
		l.mu.Lock()
		l.recordings[made.Sid] = sha256.Sum256(wav)
		l.mu.Unlock()
	}
}

// change creates a subscriber. It also signs in and revokes the login.
func (l *load) change(n int) {
	p := l.client.Project
	name := fmt.Sprintf("written%d@example.com", n)
	var made struct{ ID string }
	if l.acknowledged(changes, "POST", "/api/fabric/resources/subscribers", &made, 201, p.Basic(),
		harness.JSON(map[string]string{"email": name, "password": "fathom-lantern-" + name})) {
		l.mu.Lock()
		l.subscribers = append(l.subscribers, made.ID)
		l.mu.Unlock()
	}

	f := l.client.NewFlow(scope)
	code, err := f.QuickCode(l.cookies)
	if err != nil {
		return
	}

	tokens, err := f.QuickRedeem(code)
	if err != nil {
		return
	}

	form := url.Values{"token": {tokens.RefreshToken}}
	if l.acknowledged(changes, "POST", "/oauth/revoke", nil, 200, l.client.Authenticated(form)...) {
		l.mu.Lock()
		l.revoked = append(l.revoked, tokens.AccessToken)
		l.mu.Unlock()
	}
}

// read downloads an acknowledged recording. If a response arrives completely, it must contain the
// right bytes.
func (l *load) read(int) {
	var sid string
	var sum [sha256.Size]byte
	l.mu.Lock()
	for sid, sum = range l.recordings { // the order is random
		break
	}
	l.mu.Unlock()
	if sid == "" {
		return
	}

	p := l.client.Project
	a, err := l.front.Try("GET", p.LaML("/Recordings/"+sid+".wav"), p.Basic())
	switch {
	case err != nil, isUnavailable(a):
		l.lost[downloads].Add(1)
	case a.Status != http.StatusOK || sha256.Sum256(a.Body) != sum:
		l.fault(a, fmt.Sprintf("a download of %d bytes", len(a.Body)))
	default:
		l.done[downloads].Add(1)
	}
}

// isUnavailable reports whether an answer asks the client to come back later.
func isUnavailable(a harness.Answer) bool {
	return a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != ""
}

// acknowledged sends a request and reports whether its response has the wanted status. It decodes
// the response into v. It also accepts a lost response and a 503 with Retry-After. All other
// responses are faults.
func (l *load) acknowledged(k kind, method, path string, v any, want int, opts ...harness.Option) bool {
	a, err := l.front.Try(method, path, opts...)
	switch {
	case err != nil, isUnavailable(a):
		l.lost[k].Add(1)
		return false
	case a.Status == want && (v == nil || json.Unmarshal(a.Body, v) == nil):
		l.done[k].Add(1)
		return true
	}
	l.fault(a, method+" "+path)
	return false
}

// fault records an answer that is never acceptable.
func (l *load) fault(a harness.Answer, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf("%s = %d %s %.300s", what, a.Status, a.Header.Get("X-Request-Id"), a.Body))
}
