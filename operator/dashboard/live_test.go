package dashboard_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/operator"
)

// A follower reads an event stream.
type follower struct {
	*http.Response
	lines *bufio.Scanner
}

// follow opens an event stream, and closes it when the test ends.
func (b browser) follow(path string) follower {
	b.Helper()
	resp, err := b.client.Do(b.request("GET", path, nil))
	must(b, err)
	b.Cleanup(func() { _ = resp.Body.Close() })
	return follower{resp, bufio.NewScanner(resp.Body)}
}

// next returns the next event, or "" if the stream has ended.
func (f follower) next() string {
	for f.lines.Scan() {
		if event, ok := strings.CutPrefix(f.lines.Text(), "event: "); ok {
			return event
		}
	}
	return ""
}

// wantOneEvent fails the test unless the stream announces one change and ends.
func (f follower) wantOneEvent(t *testing.T) {
	t.Helper()
	if got := f.next(); got != "new" {
		t.Errorf("after a recording the event is %q, want new", got)
	}
	if got := f.next(); got != "" {
		t.Errorf("after the first event there is %q, want the end", got)
	}
}

// TestFollow shows that a page is notified of new rows until its operator signs out, and that the
// number of streams is limited.
func TestFollow(t *testing.T) {
	w := newWorld(t)
	in := operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer}
	_, b := w.operator("ann@example.com", in)

	base := "/dashboard/projects/" + w.one.ID
	first := w.record(w.one.ID, "a-call")
	list := b.get(base + "/recordings?call=a-call")
	list.wantText(t, base+"/recordings/live?call=a-call&amp;last="+first.Sid)
	if policy := list.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "connect-src 'self'") {
		t.Errorf("the page has the policy %q, want one that lets it follow its list", policy)
	}

	// Only rows of the project are announced. The stream ends after the first announcement.
	stream := b.follow(base + "/recordings/live?last=" + first.Sid)
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("following the list: %s, want 200", stream.Status)
	}
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store"} {
		if got := stream.Header.Get(name); got != want {
			t.Fatalf("the stream has the %s %q, want %q", name, got, want)
		}
	}
	w.record(w.two.ID, "a-call")
	w.record(w.one.ID, "other")
	stream.wantOneEvent(t)

	// A change from before the stream began is announced, too.
	b.follow(base + "/recordings/live?last=" + first.Sid).wantOneEvent(t)

	// A session may have three streams at a time.
	newest := between(b.get(base+"/audit").body, "last=", `"`)
	var streams []follower
	for range 3 {
		stream := b.follow(base + "/audit/live?last=" + newest)
		if stream.StatusCode != http.StatusOK {
			t.Errorf("one of three streams: %s, want 200", stream.Status)
		}
		streams = append(streams, stream)
	}
	fourth := b.follow(base + "/audit/live?last=" + newest)
	if fourth.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a fourth stream of a session: %s, want 429", fourth.Status)
	}
	if fourth.Header.Get("Retry-After") == "" {
		t.Error("the refusal of a fourth stream has no Retry-After")
	}
	_, other := w.operator("bob@example.com", in)
	if theirs := other.follow(base + "/audit/live?last=" + newest); theirs.StatusCode != http.StatusOK {
		t.Errorf("a stream of another operator: %s, want 200", theirs.Status)
	}

	// Signing out ends the streams.
	b.post("/dashboard/account", "/dashboard/logout", nil)
	for _, stream := range streams {
		if got := stream.next(); got != "end" {
			t.Errorf("after signing out the event is %q, want end", got)
		}
	}
}

// TestFollowNeedsFactor shows that a stream in a session without a second factor ends when its operator
// gets a role that requires one.
func TestFollowNeedsFactor(t *testing.T) {
	w := newWorldThat(t, operator.Owner)
	in := operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer}
	o, b := w.operator("ann@example.com", in)

	base := "/dashboard/projects/" + w.one.ID
	newest := between(b.get(base+"/audit").body, "last=", `"`)
	stream := b.follow(base + "/audit/live?last=" + newest)
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("following the audit trail: %s, want 200", stream.Status)
	}

	owner := operator.Membership{ProjectID: w.one.ID, Role: operator.Owner}
	_, err := w.operators.Update(t.Context(), o.ID, operator.Input{Roles: []operator.Membership{owner}}, "")
	must(t, err)
	if got := stream.next(); got != "end" {
		t.Errorf("after the change of the role the event is %q, want end", got)
	}
	if again := b.follow(base + "/audit/live?last=" + newest); again.StatusCode == http.StatusOK {
		t.Error("a session without a second factor follows a list that requires one")
	}
}

// TestPeek shows that an event stream does not extend a session, and that shutting down the server
// ends all streams.
func TestPeek(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)

	s, _, err := w.operators.Peek(t.Context(), b.cookie())
	must(t, err)
	w.pass(40 * time.Minute)
	if _, _, err := w.operators.Peek(t.Context(), b.cookie()); err != nil {
		t.Fatal(err)
	}
	after, _, err := w.operators.Peek(t.Context(), b.cookie())
	must(t, err)
	if !after.Seen.Equal(s.Seen) {
		t.Errorf("Peek changes the last use of the session to %v, want %v", after.Seen, s.Seen)
	}

	// The browser connects again.
	if again := b.follow("/dashboard/audit/live?last="); again.StatusCode != http.StatusOK {
		t.Fatalf("following the audit trail again: %s, want 200", again.Status)
	}
	w.pass(21 * time.Minute)
	if _, _, err := w.operators.Peek(t.Context(), b.cookie()); err == nil {
		t.Error("a session that only followed a list is valid after its idle time")
	}

	b.signIn("ann@example.com")
	newest := between(b.get("/dashboard/audit").body, "last=", `"`)
	stream := b.follow("/dashboard/audit/live?last=" + newest)
	w.api.Shutdown()
	if got := stream.next(); got != "" {
		t.Errorf("when the server shuts down the event is %q, want none", got)
	}
}
