package harness

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"
)

// A Browser is a browser without scripts. It keeps cookies, follows redirects and posts the forms
// on pages.
type Browser struct {
	origin string
	Jar    http.CookieJar
	http   *http.Client
}

// Browser returns a browser with no cookies.
func (s *Server) Browser() *Browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // cannot happen without options
	}
	b := &Browser{origin: strings.TrimSuffix(s.AuthURL, "/"), Jar: loopbackJar{jar}}
	b.http = &http.Client{
		Timeout:       time.Minute,
		Jar:           b.Jar,
		Transport:     client.Transport,
		CheckRedirect: client.CheckRedirect,
	}
	return b
}

// A loopbackJar treats plain HTTP on loopback as trustworthy, like browsers: it stores and sends
// Secure cookies there, too.
type loopbackJar struct{ *cookiejar.Jar }

func (j loopbackJar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	j.Jar.SetCookies(secured(u), cookies)
}

func (j loopbackJar) Cookies(u *url.URL) []*http.Cookie { return j.Jar.Cookies(secured(u)) }

func secured(u *url.URL) *url.URL {
	s := *u
	s.Scheme = "https"
	return &s
}

// A Page is the page on which a browser has arrived.
type Page struct {
	Answer
	URL  *url.URL
	Left *url.URL // the URL outside the server that the browser was sent to; nil if it was not
}

// Open opens a path of the server or a URL and follows redirects.
func (b *Browser) Open(t T, target string, opts ...Option) Page {
	t.Helper()
	if strings.HasPrefix(target, "/") {
		target = b.origin + target
	}
	return b.follow(t, http.MethodGet, target, opts...)
}

func (b *Browser) follow(t T, method, target string, opts ...Option) Page {
	t.Helper()
	for range 10 {
		a := send(t, b.http, method, target, opts...)
		here, err := url.Parse(target)
		if err != nil {
			t.Fatalf("%v", err)
		}

		if a.Status != http.StatusFound && a.Status != http.StatusSeeOther {
			return Page{Answer: a, URL: here}
		}

		next, err := here.Parse(a.Header.Get("Location"))
		if err != nil {
			t.Fatalf("%s redirected to %q: %v", a.what, a.Header.Get("Location"), err)
		}
		if next.Scheme+"://"+next.Host != b.origin {
			return Page{Answer: a, URL: here, Left: next}
		}
		method, target, opts = http.MethodGet, next.String(), nil
	}
	t.Fatalf("%s still redirects after ten requests", target)
	return Page{}
}

// Submit fills in the form that contains the button, and posts it. button and the keys of fields
// are IDs of controls, or names of controls without an ID.
func (b *Browser) Submit(t T, p Page, button string, fields map[string]string, opts ...Option) Page {
	t.Helper()
	f := p.form(t, button)
	values := f.fill(t, button, fields)

	target, err := p.URL.Parse(f.action)
	if err != nil {
		t.Fatalf("%v", err)
	}

	all := []Option{Form(values), Header("Origin", b.origin), Header("Sec-Fetch-Site", "same-origin"),
		Header("Referer", p.URL.String())}
	return b.follow(t, http.MethodPost, target.String(), append(all, opts...)...)
}

// SignIn opens an authorize URL and signs in. If a page asks for consent, SignIn allows what is
// requested. It returns the parameters of the client's callback.
func (b *Browser) SignIn(t T, authorize string, s Subscriber) url.Values {
	t.Helper()
	p := b.Open(t, authorize)
	if p.Has("username") {
		p = b.Submit(t, p, "login-submit", map[string]string{"username": s.Email, "password": s.Password})
	}

	if p.Has("consent-allow") {
		p = b.Submit(t, p, "consent-allow", nil)
	}

	return p.Callback(t)
}

// Callback returns the parameters that the client receives: in the query or the fragment of the
// redirect, or in the form of a form_post page.
func (p Page) Callback(t T) url.Values {
	t.Helper()
	if p.Left == nil && p.Has("return-submit") {
		return p.form(t, "return-submit").fill(t, "return-submit", nil)
	}
	if p.Left == nil {
		t.Fatalf("%s stayed at %s with %d %s", p.what, p.URL.Path, p.Status, clip(p.Body))
	}

	if told, err := url.ParseQuery(p.Left.EscapedFragment()); err == nil && p.Left.Fragment != "" {
		return told
	}
	return p.Left.Query()
}

// WantCallbackError ends the test unless the client receives one of the error codes.
func (p Page) WantCallbackError(t T, codes ...string) {
	t.Helper()
	got := p.Callback(t)
	for _, code := range codes {
		if got.Get("error") == code {
			return
		}
	}
	t.Fatalf("the client got %v, want the error %v", got, codes)
}

// WantErrorPage ends the test unless the browser stayed on an error page with one of the
// statuses.
func (p Page) WantErrorPage(t T, statuses ...int) {
	t.Helper()
	if p.Left != nil || p.Header.Get("Location") != "" {
		t.Fatalf("%s sent the browser to %s, want an error page", p.what, p.Header.Get("Location"))
	}
	p.Want(t, statuses...)
	if !p.Has("error-page") {
		t.Fatalf("%s returned %d %s, want a page with #error-page", p.what, p.Status, clip(p.Body))
	}
}

// Cookies returns an option for a request made outside the browser. It adds the cookies that the
// browser would send to the server now.
func (b *Browser) Cookies() Option {
	return func(r *http.Request) {
		origin, err := url.Parse(b.origin + r.URL.Path)
		if err != nil {
			panic(err) // cannot happen: the URL comes from the server
		}
		for _, c := range b.Jar.Cookies(origin) {
			r.AddCookie(c)
		}
	}
}
