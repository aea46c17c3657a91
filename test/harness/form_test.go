package harness

import (
	"net/url"
	"testing"
)

const formPage = `<!doctype html>
<form action="/other" method="post"><input name="x" value="y"><button id="go">Go</button></form>
<form method=post action='/login?a=1&amp;b=2'>
	<input type="hidden" name="id" value="a&quot;b">
	<input id="username" name="email" type="email" value="" required autofocus>
	<input type="checkbox" name="remember" value="1"><input type="checkbox" name="news" value="1" checked>
	<button id="allow" type="submit" name="answer" value="allow">Allow</button>
	<button id="deny" type="submit" name="answer" value="deny">Deny</button>
</form>`

// TestForm shows that forms are read and filled in as a browser does.
func TestForm(t *testing.T) {
	p := Page{Answer: Answer{Body: []byte(formPage)}, URL: &url.URL{}}
	f := p.form(t, "deny")
	if want := "/login?a=1&b=2"; f.action != want {
		t.Errorf("action = %q, want %q", f.action, want)
	}

	got := f.fill(t, "deny", map[string]string{"username": "ada@example.com"}).Encode()
	want := url.Values{"id": {`a"b`}, "email": {"ada@example.com"}, "news": {"1"}, "answer": {"deny"}}.Encode()
	if got != want {
		t.Errorf("fill = %s, want %s", got, want)
	}

	for id, want := range map[string]bool{"username": true, "go": true, "user": false, "email": false} {
		if got := p.Has(id); got != want {
			t.Errorf("Has(%q) = %v, want %v", id, got, want)
		}
	}
}
