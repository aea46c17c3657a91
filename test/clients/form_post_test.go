package clients

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A post is a form that an app received, and the origin of the page that posted it.
type post struct {
	form   url.Values
	origin string
}

// servePostApp serves an app that receives responses at /cb. Its page / contains a frame with the
// URL in the query parameter u.
func servePostApp(t *testing.T, p *harness.Project) (origin string, posts chan post) {
	t.Helper()
	posts = make(chan post, 8)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /cb", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err == nil {
			posts <- post{r.PostForm, r.Header.Get("Origin")}
		}
		_, _ = fmt.Fprint(w, "taken")
	})

	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<script>
const frame = document.createElement("iframe");
frame.onload = () => { window.framed = true; };
frame.src = new URLSearchParams(location.search).get("u");
document.documentElement.append(frame);
</script>`)
	})
	return serveBeside(t, p.Issuer(), mux), posts
}

// TestFormPostInChromium shows that a form_post response is submitted automatically where scripts
// run. The app can renew its login in a frame, but a page of another site gets no response in a
// frame.
func TestFormPostInChromium(t *testing.T) {
	harness.NotStorage(t)
	p := harness.Shared(t).NewProject(t)
	origin, posts := servePostApp(t, p)
	stranger, _ := servePostApp(t, p)
	c := p.NewClient(t, "spa", "--first-party", "--redirect-uri", origin+"/cb")
	sub := p.NewSubscriber(t)
	b := newTab(t)

	wantPost := func(f *harness.Flow) {
		t.Helper()
		select {
		case got := <-posts:
			if got.origin+"/" != p.Issuer() || got.form.Get("state") != f.Query.Get("state") {
				t.Errorf("the app received %v from %q, want the state %s", got.form, got.origin, f.Query.Get("state"))
			}
			f.Redeem(t, got.form.Get("code")).Want(t, 200)
		case <-time.After(patience):
			t.Fatal("the app received no form")
		}
	}

	first := c.NewFlow("openid").With("response_mode", "form_post")
	b.do(goTo(first.URL()))
	b.signIn(origin, sub.Email, sub.Password)
	wantPost(first)

	silent := c.NewFlow("openid").With("response_mode", "form_post").With("prompt", "none")

	openFrame := func(by string) {
		t.Helper()
		b.do(goTo(by + "/?" + url.Values{"u": {silent.URL()}}.Encode()))
		b.until("the frame", "window.framed")
	}
	openFrame(stranger) // the frame loads, but the page gets no response
	openFrame(origin)
	wantPost(silent)
	if len(posts) > 0 {
		t.Errorf("the app also received a form from another site's frame: %v", <-posts)
	}
}
