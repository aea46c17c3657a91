package harness

import (
	"net/http"
	"net/url"
)

// Post posts a form to a URL of the server in the same way as a page of another site, and follows
// redirects.
func (b *Browser) Post(t T, target string, v url.Values) Page {
	t.Helper()
	return b.follow(t, http.MethodPost, target, Form(v), Header("Origin", "https://rp.example"),
		Header("Sec-Fetch-Site", "cross-site"))
}

// FormPost returns the address to which a form_post page posts the response for the client. It also
// returns the values that a browser posts there (OAuth 2.0 Form Post Response Mode, section 2).
func (p Page) FormPost(t T) (action string, v url.Values) {
	t.Helper()
	p.Want(t, http.StatusOK)
	f := p.form(t, "return-submit")
	if f.method != "post" {
		t.Fatalf("the form of %s is sent by %q, want post", p.URL.Path, f.method)
	}
	return f.action, f.fill(t, "return-submit", nil)
}
