package clients

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestTab shows that the tab waits for the next page after a form is sent or a link is followed.
// Clicks that stay on the page do not make it wait.
func TestTab(t *testing.T) {
	harness.OneBackend(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<p id=says>by %q</p>
			<form><input type=hidden name=by value=form><button id=form>go</button></form>
			<a id=link href="?by=link">go</a> <a id=part href="#says">stay</a>
			<form onsubmit="return false"><button id=kept>stay</button></form>`, r.FormValue("by"))
	}))
	t.Cleanup(s.Close)

	b := newTab(t)
	for id, goes := range map[string]bool{"form": true, "link": true, "part": false, "kept": false} {
		b.do(goTo(s.URL))
		if got := eval[bool](b,
			"document.getElementById("+quoted(id)+").click(), Boolean(window.leaving)"); got != goes {
			t.Errorf("after a click on #%s the tab leaves the page: %v, want %v", id, got, goes)
		}

		want := `by ""`
		if goes {
			want = `by "` + id + `"`
		}
		if got := b.text("#says"); got != want {
			t.Errorf("after a click on #%s the page shows %s, want %s", id, got, want)
		}
	}
}
