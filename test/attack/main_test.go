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

func TestMain(m *testing.M) { harness.Main(m) }

// project returns a project of the test's own.
func project(t *testing.T) *harness.Project {
	t.Helper()
	return harness.Shared(t).NewProject(t)
}

// loginScope is what most logins here ask for.
const loginScope = "openid profile email offline_access"

// A trap is a server that nobody must be talked into calling.
type trap struct {
	URL   string
	calls atomic.Int64
}

func newTrap(t *testing.T) *trap {
	t.Helper()
	tr := &trap{}
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
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
		t.Errorf("the server made %d connections to where an attacker pointed it", n)
	}
}

// challengePattern finds the random challenge of a passkey's prompt.
var challengePattern = regexp.MustCompile(`data-options="[^"]*"`)

var backPattern = regexp.MustCompile(`name="back" value="[^"]*"`)

var noncePattern = regexp.MustCompile(`'nonce-([^']+)'`)

// plain returns a page without what differs from one answer to the next: the
// request id, the nonce of the policy, where another language leads back to, which is the
// page itself, and the words given.
func plain(a harness.Answer, words ...string) string {
	body := strings.ReplaceAll(string(a.Body), a.Header.Get("X-Request-Id"), "ID")
	if m := noncePattern.FindStringSubmatch(a.Header.Get("Content-Security-Policy")); m != nil {
		body = strings.ReplaceAll(body, m[1], "NONCE")
	}
	body = backPattern.ReplaceAllString(body, `name="back" value="BACK"`)
	body = challengePattern.ReplaceAllString(body, `data-options=""`)
	for _, w := range slices.DeleteFunc(words, func(w string) bool { return w == "" }) {
		body = strings.ReplaceAll(body, w, "WORD")
	}
	return body
}
