package attack

import (
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(watched{m}) }

// project returns a new project on the shared server, for a single test.
func project(t *testing.T) *harness.Project {
	t.Helper()
	sharedBystander.watch(t)
	return harness.Shared(t).NewProject(t)
}

// loginScope is the scope that most logins in these tests request.
const loginScope = "openid profile email offline_access"

// A trap is a server to which attackers try to direct selvage's requests. Any connection to it is a
// failure.
type trap struct {
	URL   string
	calls atomic.Int64
}

func newTrap(t *testing.T) *trap {
	t.Helper()
	tr := &trap{}
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	// Count connections, not requests, because a connection to the trap is already a failure.
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			tr.calls.Add(1)
		}
	}

	srv.Start()
	t.Cleanup(srv.Close)
	tr.URL = srv.URL
	return tr
}

func (tr *trap) wantNoCalls(t *testing.T) {
	t.Helper()
	if n := tr.calls.Load(); n != 0 {
		t.Errorf("the server opened %d connections to the trap", n)
	}
}

// challengePattern matches the options of a passkey prompt, which contain a random challenge.
var challengePattern = regexp.MustCompile(`data-options="[^"]*"`)

var backPattern = regexp.MustCompile(`name="back" value="[^"]*"`)

var noncePattern = regexp.MustCompile(`'nonce-([^']+)'`)

// tokenPattern matches a form token that ends in a random value after a dot.
var tokenPattern = regexp.MustCompile(`(name="token" value="[^".]+)\.[^"]+"`)

// plain returns a page without the parts that differ from one response to the next. These are the
// request ID, the nonce of the content security policy, the challenge of a passkey prompt, the
// return address of the language switch, the end of a form token, and the given words.
func plain(a harness.Answer, words ...string) string {
	body := strings.ReplaceAll(string(a.Body), a.Header.Get("X-Request-Id"), "ID")
	if m := noncePattern.FindStringSubmatch(a.Header.Get("Content-Security-Policy")); m != nil {
		body = strings.ReplaceAll(body, m[1], "NONCE")
	}
	body = backPattern.ReplaceAllString(body, `name="back" value="BACK"`)
	body = tokenPattern.ReplaceAllString(body, `$1"`)
	body = challengePattern.ReplaceAllString(body, `data-options=""`)
	for _, w := range slices.DeleteFunc(words, func(w string) bool { return w == "" }) {
		body = strings.ReplaceAll(body, w, "WORD")
	}
	return body
}
