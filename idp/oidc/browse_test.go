package oidc_test

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/openapi/openapitest"
)

// A browser keeps cookies, and follows redirects within the provider. It checks all responses
// against the OpenAPI documents.
type browser struct {
	w          *world
	http       *http.Client
	documented *openapitest.Transport
}

// newBrowser returns a browser without cookies.
func (w *world) newBrowser() *browser {
	jar, err := cookiejar.New(nil)
	must(w.t, err)
	follow := func(r *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(r.URL.String(), w.url) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	documented := &openapitest.Transport{}
	client := &http.Client{Jar: jar, Transport: documented, CheckRedirect: follow}
	return &browser{w: w, http: client, documented: documented}
}

func (b *browser) do(req *http.Request) reply {
	b.w.t.Helper()
	res, err := b.http.Do(req)
	must(b.w.t, err)
	for _, fault := range b.documented.Faults() {
		b.w.t.Error(fault)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(b.w.t, err)
	location, _ := res.Location() // nil without a redirect
	return reply{status: res.StatusCode, header: res.Header, body: string(body), location: location}
}

func (b *browser) get(path string) reply {
	b.w.t.Helper()
	req, err := http.NewRequest(http.MethodGet, b.w.url+path, nil)
	must(b.w.t, err)
	return b.do(req)
}

func (b *browser) post(path string, form url.Values) reply {
	b.w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.w.url+path, strings.NewReader(form.Encode()))
	must(b.w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(req)
}

func (b *browser) authorize(v url.Values) reply {
	b.w.t.Helper()
	return b.get("/login/oauth/authorize?" + v.Encode())
}

var passkeyOptions = regexp.MustCompile(`data-options="[^"]*"`)

// noChallenge returns a page without its passkey options, which are random.
func noChallenge(body string) string { return passkeyOptions.ReplaceAllString(body, "") }

var hiddenID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// logIn fills in and submits the login page.
func (b *browser) logIn(page reply, email, password string) reply {
	b.w.t.Helper()
	id := hiddenID.FindStringSubmatch(page.body)
	if id == nil {
		b.w.t.Fatalf("no login page: %d %s", page.status, page.body)
	}
	return b.post("/login", url.Values{"id": {id[1]}, "username": {email}, "password": {password}})
}

// consent submits a consent page with this answer.
func (b *browser) consent(page reply, answer string) reply {
	b.w.t.Helper()
	form := page.hiddenFields()
	form.Set("answer", answer)
	return b.post("/consent", form)
}

// code signs ada in, unless she is signed in, and returns the authorization code.
func (b *browser) code(c idp.Client, pairs ...string) string {
	b.w.t.Helper()
	got := b.authorize(request(c, pairs...))
	if got.location == nil {
		got = b.logIn(got, email, secret)
	}
	if got.param("code") == "" {
		b.w.t.Fatalf("no code: %d %v %s", got.status, got.location, got.body)
	}
	return got.param("code")
}

// A reply is a response with its whole body.
type reply struct {
	status   int
	header   http.Header
	body     string
	location *url.URL // target of a redirect; nil if there is none
}

// json decodes the body, a JSON object.
func (r reply) json(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("not JSON: %s", r.body)
	}
	return v
}

// parameters returns the parameters that the client receives. They come from the query or fragment
// of a redirect, or from a form.
func (r reply) parameters() url.Values {
	switch {
	case r.location != nil && r.location.Fragment != "":
		fields, _ := url.ParseQuery(r.location.EscapedFragment())
		return fields
	case r.location != nil:
		return r.location.Query()
	case strings.Contains(r.body, `id="return-submit"`):
		return r.hiddenFields()
	}
	return url.Values{}
}

// hiddenFields returns the hidden fields of the forms on a page.
func (r reply) hiddenFields() url.Values {
	fields := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(r.body, -1) {
		fields.Set(m[1], html.UnescapeString(m[2]))
	}
	return fields
}

// param returns one parameter that the client receives.
func (r reply) param(name string) string { return r.parameters().Get(name) }

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// wantStatus checks the status of got, the response to the request that name describes.
func wantStatus(t testing.TB, name string, got reply, want int) {
	t.Helper()
	if got.status != want {
		t.Errorf("%s: status %d, want %d; location %v, body %s", name, got.status, want, got.location, got.body)
	}
}

// wantText checks that a page contains all texts.
func wantText(t testing.TB, name string, got reply, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(got.body, want) {
			t.Errorf("%s: status %d without %q, want it in the body %s", name, got.status, want, got.body)
		}
	}
}

// wantNoText checks that a page contains none of the texts.
func wantNoText(t testing.TB, name string, got reply, texts ...string) {
	t.Helper()
	for _, unwanted := range texts {
		if strings.Contains(got.body, unwanted) {
			t.Errorf("%s: status %d with %q, want it not in the body %s", name, got.status, unwanted, got.body)
		}
	}
}

// wantParam checks one parameter that the client receives. "" means that it receives none.
func wantParam(t testing.TB, name string, got reply, param, want string) {
	t.Helper()
	if value := got.param(param); value != want {
		t.Errorf("%s: the client receives the %s %q, want %q; status %d, parameters %v",
			name, param, value, want, got.status, got.parameters())
	}
}

// wantCode checks that the client receives an authorization code.
func wantCode(t testing.TB, name string, got reply) {
	t.Helper()
	if got.param("code") == "" {
		t.Errorf("%s: no code, want one; status %d, parameters %v", name, got.status, got.parameters())
	}
}

// wantAnswer checks an authorization response. The client must receive this error and no code, or a
// code if the error is "".
func wantAnswer(t testing.TB, name string, got reply, wantError string) {
	t.Helper()
	wantParam(t, name, got, "error", wantError)
	if wantError == "" {
		wantCode(t, name, got)
	} else {
		wantParam(t, name, got, "code", "")
	}
}

// wantError checks the error code in a JSON response.
func wantError(t testing.TB, name string, got reply, want string) {
	t.Helper()
	if code := got.json(t)["error"]; code != want {
		t.Errorf("%s: the error %v, want %s; status %d, body %s", name, code, want, got.status, got.body)
	}
}

// wantMembers checks members of a JSON object. nil means that the object has none with this name.
func wantMembers(t testing.TB, name string, got, want map[string]any) {
	t.Helper()
	for member, value := range want {
		if got[member] != value {
			t.Errorf("%s: %s is %v, want %v", name, member, got[member], value)
		}
	}
}

// wantProblem checks that err is a problem that names this parameter.
func wantProblem(t testing.TB, name string, err error, param string) {
	t.Helper()
	if p := problem.First(err); p == nil || p.Param != param {
		t.Errorf("%s: the error %v, want one about %s", name, err, param)
	}
}

// wantRedirect checks where got redirects.
func wantRedirect(t testing.TB, name string, got reply, want string) {
	t.Helper()
	if got.location == nil || got.location.String() != want {
		t.Errorf("%s: status %d to %v, want a redirect to %s", name, got.status, got.location, want)
	}
}

// wantHeader checks one header of a response. "" means that it has none.
func wantHeader(t testing.TB, name string, got reply, header, want string) {
	t.Helper()
	if value := got.header.Get(header); value != want {
		t.Errorf("%s: %s %q, want %q", name, header, value, want)
	}
}

// wantSentTo checks how the client receives a response: by a redirect to a URL that begins with
// target, or in a form if target is "".
func wantSentTo(t testing.TB, name string, got reply, target string) {
	t.Helper()
	switch {
	case target == "" && got.location != nil:
		t.Errorf("%s: a redirect to %v, want a form", name, got.location)
	case target == "":
		wantStatus(t, name, got, http.StatusOK)
	case got.location == nil || !strings.HasPrefix(got.location.String(), target):
		t.Errorf("%s: status %d to %v, want a redirect to %s", name, got.status, got.location, target)
	}
}
