package oidc

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A login whose request no longer exists starts over automatically. For this, the browser stores
// the URL at which the login started. The browser is redirected to this URL, with the email address
// that was typed. This is as safe as a reload of the app, because the request is fully checked
// again.

// restartCookie stores the browser's latest requests, one for each tab in which a person signs in. Each
// request consists of an id, a start time and a URL. The newest request comes first.
const restartCookie = "selvage-again"

const (
	betweenStarts = "~"
	maxStarts     = 3000             // maximum length of the cookie; older requests are dropped
	maxStart      = 1500             // longer URLs are not stored
	restartWithin = 24 * time.Hour   // after this, the app has also forgotten its request
	restartAfter  = 10 * time.Second // if the request is gone sooner, restarting would not help
)

// errRequestGone is like errStale, for requests that may be started over.
var errRequestGone = pageError(http.StatusBadRequest, "error.over", "error.over-text")

// rememberStart stores the URL of r in restartCookie, if an authorization request starts there.
func (pg *pages) rememberStart(w http.ResponseWriter, r *http.Request, id string) {
	start := r.URL.RequestURI()
	if r.Method != http.MethodGet || len(start) > maxStart || !begins(start) {
		return
	}
	began := strconv.FormatInt(pg.Now().Unix(), 10)
	encoded := base64.RawURLEncoding.EncodeToString([]byte(start))
	kept := id + "." + began + "." + encoded
	for _, other := range pg.starts(r) {
		if len(kept)+len(betweenStarts)+len(other) > maxStarts {
			break
		}
		kept += betweenStarts + other
	}
	pg.cookies.Set(w, r, restartCookie, kept)
}

// starts returns the requests in restartCookie.
func (pg *pages) starts(r *http.Request) []string {
	isBetween := func(c rune) bool { return string(c) == betweenStarts }
	return strings.FieldsFunc(pg.cookies.Read(r, restartCookie), isBetween)
}

// forgetStart removes a request from restartCookie, so that an answered request is not started over.
func (pg *pages) forgetStart(w http.ResponseWriter, r *http.Request, id string) {
	all := pg.starts(r)
	isOf := func(start string) bool { return strings.HasPrefix(start, id+".") }
	if kept := slices.DeleteFunc(slices.Clone(all), isOf); len(kept) < len(all) {
		pg.cookies.Set(w, r, restartCookie, strings.Join(kept, betweenStarts))
	}
}

// begins reports whether authorization requests start at this URL.
func begins(address string) bool {
	path, _, _ := strings.Cut(ownPath(address), "?")
	return path == authorizePath || path == "/account"
}

// startOf returns the URL at which r's browser started the request with this id, or "".
func (pg *pages) startOf(r *http.Request, id string) string {
	all := pg.starts(r)
	i := slices.IndexFunc(all, func(start string) bool { return strings.HasPrefix(start, id+".") })
	if i < 0 || id == "" {
		return ""
	}
	kept := strings.SplitN(all[i], ".", 3)
	if len(kept) != 3 {
		return ""
	}
	began, err := strconv.ParseInt(kept[1], 10, 64)
	if err != nil {
		return ""
	}
	if age := pg.Now().Sub(time.Unix(began, 0)); age < restartAfter || age > restartWithin {
		return ""
	}
	start, err := base64.RawURLEncoding.DecodeString(kept[2])
	if err != nil || len(start) > maxStart || !begins(string(start)) {
		return ""
	}
	return ownPath(string(start))
}

// restart redirects to the URL at which the request of r started. It returns false if err is not
// errRequestGone or the URL is unknown.
func (pg *pages) restart(w http.ResponseWriter, r *http.Request, err error) bool {
	if !errors.Is(err, errRequestGone) {
		return false
	}

	id := r.URL.Query().Get("id")
	if r.Method == http.MethodPost {
		id = r.PostForm.Get("id")
	}
	u, err := url.Parse(pg.startOf(r, id))
	if err != nil || u.Path == "" {
		return false
	}

	q := u.Query()
	if typed := typedEmail(r.PostForm.Get("username")); typed != "" && u.Path == authorizePath {
		q.Set("login_hint", typed)
	}
	q.Set(restartParam, "1")
	u.RawQuery = q.Encode()

	pg.forgetStart(w, r, id)
	pg.cookies.EndFlow(w, r, id)
	seeOther(w, u.String())
	return true
}

// restartParam marks a request that was started over, so that the page can say so.
const restartParam = "selvage_again"
