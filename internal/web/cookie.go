package web

import (
	"crypto/rand"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Cookies says how cookies are named and marked. Over TLS, and on loopback in
// browsers that take Secure cookies there, names begin with __Host- (RFC 6265bis,
// section 4.1.3.2): no other host or path can set them, and they never travel in
// the clear. A cookie is only ever read under the name it would be written with.
type Cookies struct {
	PublicURL *url.URL // where browsers find us
}

// secure reports whether the browser of r takes a Secure cookie from us.
func (c Cookies) secure(r *http.Request) bool {
	if r.TLS != nil || c.PublicURL.Scheme == "https" {
		return true
	}
	// On http://localhost Chromium and Firefox take Secure cookies; Safari does not.
	agent := r.UserAgent()
	return isLoopbackHost(c.PublicURL.Hostname()) &&
		(strings.Contains(agent, "Chrome/") || strings.Contains(agent, "Firefox/"))
}

func isLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// make returns a cookie for r's browser. An empty value removes it.
func (c Cookies) make(r *http.Request, name, value string) *http.Cookie {
	ck := &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if c.secure(r) {
		ck.Name, ck.Secure = "__Host-"+name, true
	}
	if value == "" {
		ck.MaxAge = -1
	}
	return ck
}

// read returns a cookie's value, or "". Two cookies of one name are none.
func (c Cookies) read(r *http.Request, name string) string {
	if c.secure(r) {
		name = "__Host-" + name
	}
	if found := r.CookiesNamed(name); len(found) == 1 {
		return found[0].Value
	}
	return ""
}

// Set returns r's browser a cookie; an empty value removes it.
func (c Cookies) Set(w http.ResponseWriter, r *http.Request, name, value string) {
	http.SetCookie(w, c.make(r, name, value))
}

// Read returns a cookie's value, or "". Two cookies of one name are none.
func (c Cookies) Read(r *http.Request, name string) string { return c.read(r, name) }

// flowCookie binds a login to the browser that began it.
const flowCookie = "selvage-flow"

// Flow returns the browser's random mark, setting it first if there is none.
func (c Cookies) Flow(w http.ResponseWriter, r *http.Request) string {
	if mark := c.FlowOf(r); mark != "" {
		return mark
	}
	mark := rand.Text()
	http.SetCookie(w, c.make(r, flowCookie, mark))
	return mark
}

// deviceCookie sets a device apart from strangers, long after it was signed out.
const deviceCookie = "selvage-device"

// Device returns what SetDevice has set, or "".
func (c Cookies) Device(r *http.Request) string { return c.read(r, deviceCookie) }

// SetDevice sets what is remembered of a device, for so long.
func (c Cookies) SetDevice(w http.ResponseWriter, r *http.Request, value string, kept time.Duration) {
	ck := c.make(r, deviceCookie, value)
	ck.MaxAge = int(kept.Seconds())
	http.SetCookie(w, ck)
}

// FlowOf returns the browser's mark, or "".
func (c Cookies) FlowOf(r *http.Request) string {
	if mark := c.read(r, flowCookie); len(mark) == len(rand.Text()) {
		return mark
	}
	return ""
}
