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

// TestFollow shows that a page is notified of new rows until its operator signs out, and that the
// number of streams is limited.
func TestFollow(t *testing.T) {
	w := newWorld(t)
	in := operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer}
	_, b := w.operator("ann@example.com", in)

	base := "/dashboard/projects/" + w.one.ID
	first := w.record(w.one.ID, "a-call")
	page := b.get(base + "/recordings?call=a-call")
	if !strings.Contains(page.body, base+"/recordings/live?call=a-call&amp;last="+first.Sid) ||
		!strings.Contains(page.Header.Get("Content-Security-Policy"), "connect-src 'self'") {
		t.Errorf("the page does not follow its list: %s", page.Status)
	}

	// Only rows of the project are announced. The stream ends after the first announcement.
	f := b.follow(base + "/recordings/live?last=" + first.Sid)
	if f.StatusCode != http.StatusOK || f.Header.Get("Content-Type") != "text/event-stream" ||
		f.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("following: %s %v, want an event stream", f.Status, f.Header)
	}

	w.record(w.two.ID, "a-call")
	w.record(w.one.ID, "other")
	if got, after := f.next(), f.next(); got != "new" || after != "" {
		t.Errorf("after a recording the events are %q and %q, want new and the end",
			got, after)
	}

	if again := b.follow(base + "/recordings/live?last=" + first.Sid); again.next() != "new" || again.next() != "" {
		t.Error("a change from before the stream began is not announced exactly once")
	}

	// A session may have three streams at a time.
	newest := between(b.get(base+"/audit").body, "last=", `"`)
	var all []follower
	for range 3 {
		f := b.follow(base + "/audit/live?last=" + newest)
		if f.StatusCode != http.StatusOK {
			t.Errorf("one of three streams: %s, want 200", f.Status)
		}
		all = append(all, f)
	}

	if fourth := b.follow(base + "/audit/live?last=" + newest); fourth.StatusCode != http.StatusTooManyRequests ||
		fourth.Header.Get("Retry-After") == "" {
		t.Errorf("a fourth stream of a session: %s, want 429 and Retry-After", fourth.Status)
	}

	_, other := w.operator("bob@example.com", in)
	if f := other.follow(base + "/audit/live?last=" + newest); f.StatusCode != http.StatusOK {
		t.Errorf("a stream of another operator: %s, want 200", f.Status)
	}

	// Signing out ends the streams.
	b.post("/dashboard/account", "/dashboard/logout", nil)
	for _, f := range all {
		if got := f.next(); got != "end" {
			t.Errorf("after signing out the event is %q, want end", got)
		}
	}
}

// TestFollowNeedsFactor shows that a stream ends when its operator gets a role that requires a
// second factor, if none was used in that session.
func TestFollowNeedsFactor(t *testing.T) {
	w := newWorldThat(t, operator.Owner)
	in := operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer}
	o, b := w.operator("ann@example.com", in)

	base := "/dashboard/projects/" + w.one.ID
	newest := between(b.get(base+"/audit").body, "last=", `"`)
	f := b.follow(base + "/audit/live?last=" + newest)
	if f.StatusCode != http.StatusOK {
		t.Fatalf("following: %s, want 200", f.Status)
	}

	owner := operator.Membership{ProjectID: w.one.ID, Role: operator.Owner}
	_, err := w.operators.Update(t.Context(), o.ID, operator.Input{Roles: []operator.Membership{owner}}, "")
	must(t, err)
	if got := f.next(); got != "end" {
		t.Errorf("after a role that requires a second factor the event is %q, want end", got)
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
	if after, _, err := w.operators.Peek(t.Context(), b.cookie()); err != nil || !after.Seen.Equal(s.Seen) {
		t.Errorf("Peek counts as a use of the session: %v, %v", after.Seen, err)
	}

	w.pass(40 * time.Minute)
	if _, _, err := w.operators.Peek(t.Context(), b.cookie()); err == nil {
		t.Error("a session that was only peeked at is valid after its idle time")
	}

	b.signIn("ann@example.com")
	newest := between(b.get("/dashboard/audit").body, "last=", `"`)
	f := b.follow("/dashboard/audit/live?last=" + newest)
	w.api.Shutdown()
	if got := f.next(); got != "" {
		t.Errorf("when the server shuts down the event is %q, want none", got)
	}
}
