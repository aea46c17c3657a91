package web

import (
	"crypto/rand"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/session"
)

// Cookies names cookies and sets their attributes. Over TLS, names begin with __Host- (RFC 6265bis,
// section 4.1.3.2). Therefore, no other host can set these cookies, and browsers never send them
// unencrypted. On loopback, Cookies does the same for browsers that accept Secure cookies there. A
// cookie is read only under the name that Cookies would give it now.
type Cookies struct {
	PublicURL *url.URL // the URL that browsers use
}

// secure reports whether the browser of r accepts a Secure cookie from this server.
func (c Cookies) secure(r *http.Request) bool {
	if r.TLS != nil || c.PublicURL.Scheme == "https" {
		return true
	}
	// On http://localhost, Chromium and Firefox accept Secure cookies; Safari does not.
	agent := r.UserAgent()
	return isLoopbackHost(c.PublicURL.Hostname()) &&
		(strings.Contains(agent, "Chrome/") || strings.Contains(agent, "Firefox/"))
}

func isLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// make returns a cookie for the browser that sent r. An empty value deletes the cookie.
func (c Cookies) make(r *http.Request, name, value string) *http.Cookie {
	ck := &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if c.secure(r) {
		ck.Name = "__Host-" + name
		ck.Secure = true
	}
	if value == "" {
		ck.MaxAge = -1
	}
	return ck
}

// Set sets a cookie in the browser that sent r. An empty value deletes the cookie.
func (c Cookies) Set(w http.ResponseWriter, r *http.Request, name, value string) {
	http.SetCookie(w, c.make(r, name, value))
}

// Read returns a cookie's value, or "" if the cookie is missing or sent twice.
func (c Cookies) Read(r *http.Request, name string) string {
	if c.secure(r) {
		name = "__Host-" + name
	}
	if found := r.CookiesNamed(name); len(found) == 1 {
		return found[0].Value
	}
	return ""
}

// flowCookie binds a login to the browser that started it.
const flowCookie = "selvage-flow"

// Flow returns the random mark that identifies the browser during a login. It sets a new mark if
// the browser has none.
func (c Cookies) Flow(w http.ResponseWriter, r *http.Request) string {
	if mark := c.FlowOf(r); mark != "" {
		return mark
	}
	mark := rand.Text()
	http.SetCookie(w, c.make(r, flowCookie, mark))
	return mark
}

// FlowOf returns the browser's mark, or "" if it has none.
func (c Cookies) FlowOf(r *http.Request) string { return c.readFlow(r, flowCookie) }

func (c Cookies) readFlow(r *http.Request, name string) string {
	if mark := c.Read(r, name); len(mark) == len(rand.Text()) {
		return mark
	}
	return ""
}

// FlowFor returns the mark that identifies the browser during the authorization request with this id. If
// the browser has none, FlowFor sets a new mark, and also stores it for this request alone. Otherwise, if
// a browser's first two requests came at the same time, the mark of the second would replace that of the
// first, and the first request could not continue.
func (c Cookies) FlowFor(w http.ResponseWriter, r *http.Request, request string) string {
	if mark := c.FlowOfRequest(r, request); mark != "" {
		return mark
	}
	mark := c.Flow(w, r)
	c.Set(w, r, flowOfRequest(request), mark)
	return mark
}

// FlowOfRequest returns the browser's mark for an authorization request, or "" if it has none.
func (c Cookies) FlowOfRequest(r *http.Request, request string) string {
	if mark := c.readFlow(r, flowOfRequest(request)); mark != "" {
		return mark
	}
	return c.FlowOf(r)
}

// EndFlow deletes the mark that FlowFor has stored for this authorization request alone.
func (c Cookies) EndFlow(w http.ResponseWriter, r *http.Request, request string) {
	if name := flowOfRequest(request); c.Read(r, name) != "" {
		c.Set(w, r, name, "")
	}
}

// flowOfRequest returns the name of the cookie with the mark for a single authorization request.
func flowOfRequest(request string) string { return flowCookie + "-" + session.Digest(request)[:16] }

// deviceCookie identifies a known device, even long after its user signed out.
const deviceCookie = "selvage-device"

// Device returns the value set by SetDevice, or "".
func (c Cookies) Device(r *http.Request) string { return c.Read(r, deviceCookie) }

// SetDevice sets the device cookie. The browser keeps the cookie for the given time.
func (c Cookies) SetDevice(w http.ResponseWriter, r *http.Request, value string, kept time.Duration) {
	ck := c.make(r, deviceCookie, value)
	ck.MaxAge = int(kept.Seconds())
	http.SetCookie(w, ck)
}

// stateCookie holds the state of a browser's logins. Scripts can read it, even in frames on other
// sites.
const stateCookie = "selvage-state"

// BrowserState returns the value that SetBrowserState has set, or "".
func (c Cookies) BrowserState(r *http.Request) string { return c.Read(r, stateCookie) }

// SetBrowserState sets the state of a browser's logins, which must reveal nothing about them.
func (c Cookies) SetBrowserState(w http.ResponseWriter, r *http.Request, value string) {
	ck := c.make(r, stateCookie, value)
	ck.HttpOnly = false
	if ck.Secure {
		ck.SameSite = http.SameSiteNoneMode
	}
	http.SetCookie(w, ck)
}
