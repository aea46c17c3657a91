package dashboard_test

import (
	"bytes"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
)

// A browser keeps cookies and follows no redirects.
type browser struct {
	*world
	client *http.Client
}

func (w *world) browser() browser {
	jar, err := cookiejar.New(nil)
	must(w, err)
	useLast := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return browser{world: w, client: &http.Client{Jar: jar, CheckRedirect: useLast}}
}

// exchange sends a request and reads the response.
func (b browser) exchange(r *http.Request) (answer, error) {
	resp, err := b.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{Response: resp, body: string(body)}, err
}

// send sends a request and returns the answer. It reports texts that are not translated.
func (b browser) send(r *http.Request) answer {
	b.Helper()
	a, err := b.exchange(r)
	must(b, err)
	isText := strings.HasPrefix(a.Header.Get("Content-Type"), "text/")
	if isText && strings.ContainsAny(a.body, "\x1e\x1f") {
		b.Errorf("%s shows a text that the template did not pass to tr", r.URL)
	}
	return a
}

// request returns a request with the given form, as a browser sends it from a page of the
// dashboard.
func (b browser) request(method, path string, form url.Values) *http.Request {
	b.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequest(method, b.url+path, body)
	must(b, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return r
}

func (b browser) get(path string) answer {
	b.Helper()
	return b.send(b.request("GET", path, nil))
}

// formToken and shownMarks match the form token of a page and the digests of the values it shows.
var (
	formToken  = regexp.MustCompile(`name="form" value="([^"]+)"`)
	shownMarks = regexp.MustCompile(`name="seen" value="([^"]+)"`)
)

// token returns the form token of a page.
func (b browser) token(path string) string {
	b.Helper()
	m := formToken.FindStringSubmatch(b.get(path).body)
	if m == nil {
		b.Fatalf("there is no form on %s", path)
	}
	return html.UnescapeString(m[1])
}

// post submits a form to path, with the form token of the given page. It adds the page's "seen"
// digest unless form already has one.
func (b browser) post(page, path string, form url.Values) answer {
	b.Helper()
	if form == nil {
		form = make(url.Values)
	}
	form.Set("form", b.token(page))
	if seen := shownMarks.FindStringSubmatch(b.get(page).body); seen != nil && !form.Has("seen") {
		form.Set("seen", html.UnescapeString(seen[1]))
	}
	r := b.request("POST", path, form)
	r.Header.Set("Referer", b.url+page)
	return b.send(r)
}

// signIn signs in an operator whose password is the constant good.
func (b browser) signIn(email string) {
	b.Helper()
	a := b.post("/dashboard/login", "/dashboard/login", url.Values{"username": {email}, "password": {good}})
	if a.StatusCode != http.StatusSeeOther {
		b.Fatalf("signing in as %s returned %s: %s, want 303", email, a.Status, a.body)
	}
}

// cookie returns the session cookie, or "".
func (b browser) cookie() string {
	u, _ := url.Parse(b.url) // always valid: the URL of a test server
	for _, c := range b.client.Jar.Cookies(u) {
		if strings.HasSuffix(c.Name, "selvage-operator") {
			return c.Value
		}
	}
	return ""
}

// upload submits a form whose last part is a file.
func (b browser) upload(path, file string, fields ...string) answer {
	b.Helper()
	return b.uploadFirst(path, fields, file)
}

// uploadFirst submits a form with fields before and after the file.
func (b browser) uploadFirst(path string, before []string, file string, after ...string) answer {
	b.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	write := func(fields []string) {
		for i := 0; i < len(fields); i += 2 {
			must(b, w.WriteField(fields[i], fields[i+1]))
		}
	}
	write(before)
	part, err := w.CreateFormFile("file", "call.wav")
	must(b, err)
	_, err = io.WriteString(part, file)
	must(b, err)
	write(after)
	must(b, w.Close())
	return b.multipart(path, w.FormDataContentType(), &body)
}

// multipart submits a form that is already encoded as multipart/form-data with the given type.
func (b browser) multipart(path, contentType string, body io.Reader) answer {
	b.Helper()
	r, err := http.NewRequest("POST", b.url+path, body)
	must(b, err)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.send(r)
}
